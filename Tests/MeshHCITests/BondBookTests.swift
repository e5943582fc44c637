// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
import MeshBluetoothStack
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

struct BondBookTests {
    private let own = DeviceAddress(0x00AA_BBCC_DD00, .public)
    private let peer = DeviceAddress(0xC011_2233_4455, .random)

    private var book: BondBook {
        var book = BondBook(randomAddress: DeviceAddress(0xC000_0000_0001, .random))
        book[own, peer] = Bond(
            peer: peer, peerResolvingKey: [UInt8](repeating: 0xAB, count: 16),
            centralKey: LongTermKey(key: [UInt8](1...16), random: .max, diversifier: 0xFFFF, size: 7),
            peripheralKey: nil, isAuthenticated: true, isSecureConnections: false)
        return book
    }

    @Test func `what is stored is read`() {
        #expect(BondBook(json: book.json) == book)
    }

    @Test func `a name is kept with the bond, and files of earlier versions have none`() throws {
        var named = book
        named[own, peer]?.name = "Roof"
        #expect(BondBook(json: named.json) == named)
        #expect(named.peers(of: own, named: "Roof") == [peer])
        #expect(book.peers(of: own, named: "Roof") == [])
        var members = try #require(named.json.objectValue)
        var bond = try #require(members["bonds"]?.arrayValue?.first?.objectValue)
        bond["name"] = nil
        members["bonds"] = .array([.object(bond)])
        #expect(BondBook(json: .object(members)) == book)
    }

    @Test(arguments: [RemoteDatabase.Tag.hash([UInt8](240...255)), .firmware([0x31, 0x2E]), .absent])
    func `attributes are kept with the bond, and cost no keys when they cannot be read`(tag: RemoteDatabase.Tag) throws
    {
        var book = book
        let service = RemoteService(uuid: GATTSerialProfile.nordicUART.service, range: .init(14, 19))
        book[own, peer]?.database = RemoteDatabase(
            tag: tag,
            services: [
                .init(
                    service,
                    characteristics: [
                        .init(
                            uuid: GATTSerialProfile.nordicUART.transmit, properties: 0x10, declarationHandle: 17,
                            valueHandle: 18)
                    ])
            ], configurations: [18: 19], serviceChanged: 10)
        #expect(BondBook(json: book.json) == book)
        var members = try #require(book.json.objectValue)
        var bond = try #require(members["bonds"]?.arrayValue?.first?.objectValue)
        for broken: JSONValue in [.null, "x", ["tag": "hash"], ["tag": "firmware", "value": [256]]] {
            bond["database"] = broken
            members["bonds"] = .array([.object(bond)])
            let read = try #require(BondBook(json: .object(members)))
            #expect(read == self.book)
        }
    }

    @Test func `what was learnt before the file could be read is added to what is in it`() {
        var memory = BondBook(randomAddress: DeviceAddress(0xC000_0000_0002, .random))
        #expect(memory.added(to: book) == book)
        let other = DeviceAddress(0xC011_2233_4466, .random)
        var renewed = book[own, peer]!
        renewed.isSecureConnections = true
        memory[own, peer] = renewed
        memory[own, other] = Bond(
            peer: other, peerResolvingKey: nil, centralKey: nil, peripheralKey: nil, isAuthenticated: false,
            isSecureConnections: true)
        let both = memory.added(to: book)
        #expect(both.randomAddress == book.randomAddress)
        #expect(both[own, peer] == renewed)
        #expect(both[own, other] == memory[own, other])
    }

    @Test func `a bond belongs to the address of this host`() {
        #expect(book[own, peer] != nil)
        #expect(book[DeviceAddress(own.value, .random), peer] == nil)
        #expect(book.identities.map(\.address) == [peer])
    }

    @Test(arguments: ["v", "random_address", "bonds"])
    func `a file that lacks something is no book`(key: String) throws {
        var members = try #require(book.json.objectValue)
        members[key] = nil
        #expect(BondBook(json: .object(members)) == nil)
    }

    @Test(arguments: ["own", "peer", "irk", "central_key", "peripheral_key", "authenticated", "secure_connections"])
    func `a bond that lacks something is none`(key: String) throws {
        var members = try #require(book.json.objectValue)
        var bond = try #require(members["bonds"]?.arrayValue?.first?.objectValue)
        bond[key] = nil
        members["bonds"] = .array([.object(bond)])
        #expect(BondBook(json: .object(members)) == nil)
    }
}
