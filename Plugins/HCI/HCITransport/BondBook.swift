// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshTransportAPI

/// The keys of devices that were paired with, and what this host is known by. A bond belongs to the address of the controller
/// that it was made with: another controller is another host to the device.
struct BondBook: Sendable, Hashable {
    /// Used where a controller has no address of its own; kept, since bonds are made with it.
    var randomAddress: DeviceAddress
    /// By the own address, then by the peer's.
    private(set) var bonds: [DeviceAddress: [DeviceAddress: Bond]] = [:]

    init(randomAddress: DeviceAddress) {
        self.randomAddress = randomAddress
    }

    subscript(own: DeviceAddress, peer: DeviceAddress) -> Bond? {
        get { bonds[own]?[peer] }
        set { bonds[own, default: [:]][peer] = newValue }
    }

    /// The book that was stored, with what this one has besides, which is newer.
    func added(to stored: BondBook) -> BondBook {
        var book = stored
        for (own, peers) in bonds { for (peer, bond) in peers { book[own, peer] = bond } }
        return book
    }

    /// The devices that are bonded with the controller of this address.
    func peers(of own: DeviceAddress) -> [DeviceAddress] { bonds[own].map { Array($0.keys) } ?? [] }

    /// Those of them that are looked for by this name.
    func peers(of own: DeviceAddress, named name: String) -> [DeviceAddress] {
        bonds[own]?.values.filter { $0.name == name }.map(\.peer) ?? []
    }

    /// The keys that resolve private addresses, and what they stand for.
    var identities: [(address: DeviceAddress, key: [UInt8])] {
        bonds.values.flatMap(\.values).compactMap { bond in bond.peerResolvingKey.map { (bond.peer, $0) } }
    }
}

/// As it is stored.
extension BondBook {
    private static let version = 1

    var json: JSONValue {
        let entries = bonds.flatMap { own, bonds in
            bonds.values.map { bond -> JSONValue in
                [
                    "own": .string(own.description), "peer": .string(bond.peer.description),
                    "irk": bond.peerResolvingKey.map { .string(Self.hex($0)) } ?? .null,
                    "central_key": Self.json(bond.centralKey), "peripheral_key": Self.json(bond.peripheralKey),
                    "authenticated": .bool(bond.isAuthenticated), "secure_connections": .bool(bond.isSecureConnections),
                    "database": bond.database?.json ?? .null, "name": bond.name.map { .string($0) } ?? .null,
                ]
            }
        }
        return [
            "v": .int(Int64(Self.version)), "random_address": .string(randomAddress.description),
            "bonds": .array(entries),
        ]
    }

    /// Nil for anything but what ``json`` gives: half of the keys would be worse than none.
    init?(json: JSONValue) {
        guard json["v"] == .int(Int64(Self.version)), let random = Self.address(json["random_address"]),
            let entries = json["bonds"]?.arrayValue
        else { return nil }
        self.init(randomAddress: random)
        for entry in entries {
            guard let own = Self.address(entry["own"]), let peer = Self.address(entry["peer"]),
                let irk = Self.key(entry["irk"]), let central = Self.longTermKey(entry["central_key"]),
                let peripheral = Self.longTermKey(entry["peripheral_key"]),
                let isAuthenticated = entry["authenticated"]?.boolValue,
                let isSecureConnections = entry["secure_connections"]?.boolValue
            else { return nil }
            self[own, peer] = Bond(
                peer: peer, peerResolvingKey: irk, centralKey: central, peripheralKey: peripheral,
                isAuthenticated: isAuthenticated, isSecureConnections: isSecureConnections,
                // Good for no more than some round trips: one that cannot be read is looked for again.
                database: entry["database"].flatMap { RemoteDatabase(json: $0) },
                // Not in files of earlier versions.
                name: entry["name"]?.stringValue)
        }
    }

    private static func address(_ json: JSONValue?) -> DeviceAddress? {
        guard let address = json?.stringValue.flatMap({ BLEAddress($0) }) else { return nil }
        return address.kind.map { DeviceAddress(address.value, $0 == .public ? .public : .random) }
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// 16 bytes; the inner nil stands for a key that there is not, the outer for what is none.
    private static func key(_ json: JSONValue?) -> [UInt8]?? {
        if json == .null { return .some(nil) }
        guard let digits = json?.stringValue.map({ Array($0.utf8) }), digits.count == 32 else { return nil }
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: 32, by: 2) {
            guard let byte = UInt8(String(decoding: digits[start..<start + 2], as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(byte)
        }
        return bytes
    }

    private static func json(_ key: LongTermKey?) -> JSONValue {
        guard let key else { return .null }
        return [
            "key": .string(hex(key.key)), "random": .string(String(key.random, radix: 16)),
            "diversifier": .int(Int64(key.diversifier)), "size": .int(Int64(key.size)),
        ]
    }

    private static func longTermKey(_ json: JSONValue?) -> LongTermKey?? {
        if json == .null { return .some(nil) }
        guard let json, case .some(.some(let key)) = key(json["key"]),
            let random = json["random"]?.stringValue.flatMap({ UInt64($0, radix: 16) }),
            let diversifier = json["diversifier"]?.intValue.flatMap({ UInt16(exactly: $0) }),
            let size = json["size"]?.intValue.flatMap({ UInt8(exactly: $0) }), (7...16).contains(size)
        else { return nil }
        return .some(LongTermKey(key: key, random: random, diversifier: diversifier, size: size))
    }
}
