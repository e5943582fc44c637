// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTestSupport
import Testing

@testable import MeshWire

/// Golden bytes are those of Bumble's `AdvertisingData` (0.0.236; google/bumble, core.py).
struct AdvertisingDataTests {
    private static let companion = bytes(
        "02010611079ecadc240ee5a9e093f3a3b50100406e" + "0e094d657368436f72652d726f6f66")
    private static let everything = bytes(
        "02010605030f180a1805057856341211079ecadc240ee5a9e093f3a3b50100406e06084d65c5a168020a"
            + "f404160f186413219ecadc240ee5a9e093f3a3b50100406e01020319000206ff5900010203")

    private static func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    private static var decodedEverything: AdvertisingData {
        var data = AdvertisingData()
        data.flags = [.generalDiscoverable, .lowEnergyOnly]
        data.services = [BluetoothUUID(0x180F), BluetoothUUID(0x180A), BluetoothUUID(0x1234_5678), .nordicUART]
        data.localName = .init("Mešh", isShortened: true)
        data.transmitPower = -12
        data.serviceData = [
            .init(service: BluetoothUUID(0x180F), bytes: [100]), .init(service: .nordicUART, bytes: [1, 2]),
        ]
        data.others = [.init(type: 0x19, bytes: [0x00, 0x02])]
        data.manufacturerData = [.init(company: 0x0059, bytes: [1, 2, 3])]
        return data
    }

    @Test func `what an independent implementation writes is read`() {
        #expect(AdvertisingData.decode(Self.everything) == (Self.decodedEverything, 0))
        let (companion, skipped) = AdvertisingData.decode(Self.companion)
        #expect(companion.services == [.nordicUART])
        #expect(companion.localName == .init("MeshCore-roof"))
        #expect(skipped == 0)
    }

    @Test func `what is written is what an independent implementation writes`() {
        #expect(Self.decodedEverything.encoded() == Self.everything)
    }

    @Test func `every beginning of an advertisement is read as far as it goes`() {
        for count in 0..<Self.everything.count {
            let (data, skipped) = AdvertisingData.decode(Array(Self.everything.prefix(count)))
            // Only the structure that was cut is lost.
            #expect(skipped <= 19)
            #expect(count < 3 || data.flags == [.generalDiscoverable, .lowEnergyOnly])
            #expect(count < 9 || data.services.count >= 2)
        }
    }

    @Test func `a structure whose content is too short is passed over and counted`() {
        // A list of 16-bit UUIDs with three bytes, no flags, no power, a company of one byte; then flags.
        let garbage = Self.bytes("0403aabbcc" + "0101" + "010a" + "02ff59")
        let (data, skipped) = AdvertisingData.decode(garbage + [2, 1, 6])
        #expect(data.services.isEmpty && data.manufacturerData.isEmpty && data.transmitPower == nil)
        #expect(data.flags == [.generalDiscoverable, .lowEnergyOnly])
        #expect(skipped == garbage.count)
    }

    @Test func `whatever comes from the air is read, and written back as it was understood`() {
        var generator = SplitMix(state: 11)
        for _ in 0..<20_000 {
            var bytes = Self.everything
            // Garbage, or an advertisement with some bytes changed, or cut.
            switch Int.random(in: 0..<3, using: &generator) {
            case 0:
                bytes = (0..<Int.random(in: 0..<64, using: &generator)).map { _ in
                    .random(in: 0...255, using: &generator)
                }
            case 1:
                for _ in 0..<3 {
                    bytes[.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
                }
            default: bytes.removeSubrange(Int.random(in: 0..<bytes.count, using: &generator)...)
            }
            bytes.withUnsafeBytes { AdvertisingCheck.run($0) }
        }
    }

    @Test func `a scan response behind the padding of its advertisement is read`() {
        let padded = Self.companion.prefix(21) + [UInt8](repeating: 0, count: 10) + Self.companion.dropFirst(21)
        #expect(AdvertisingData.decode(Array(padded)) == AdvertisingData.decode(Self.companion))
    }

    @Test func `a complete name wins, wherever it stands`() {
        let (short, complete): ([UInt8], [UInt8]) = ([3, 8, 0x61, 0x62], [4, 9, 0x61, 0x62, 0x63])
        #expect(AdvertisingData.decode(short + complete).data.localName == .init("abc"))
        #expect(AdvertisingData.decode(complete + short).data.localName == .init("abc"))
    }

    @Test func `a name that is no text is repaired`() {
        #expect(AdvertisingData.decode([3, 9, 0x61, 0xFF]).data.localName == .init("a\u{FFFD}"))
    }

    @Test func `more services than one structure holds are written in several`() {
        var data = AdvertisingData()
        data.services = (1...20).map { BluetoothUUID(high: UInt64($0), low: 1) }
        let (again, skipped) = AdvertisingData.decode(data.encoded())
        #expect(again.services == data.services)
        #expect(skipped == 0)
    }

    @Test func `what a peripheral of this host advertises fits, and reads back`() {
        let announced = AdvertisingData.announcing(.nordicUART).encoded()
        #expect(announced.count <= 31)
        #expect(AdvertisingData.decode(announced).data.services == [.nordicUART])
        let long = AdvertisingData.naming(String(repeating: "ä", count: 20)).encoded()
        #expect(long.count <= 31)
        #expect(
            AdvertisingData.decode(long).data.localName == .init(String(repeating: "ä", count: 14), isShortened: true))
        #expect(AdvertisingData.naming("roof").localName == .init("roof"))
    }

    @Test func `kinds are recognised by service and name`() {
        let (companion, _) = AdvertisingData.decode(Self.companion)
        #expect(DeviceKind(companion) == .meshCoreCompanion)
        var other = companion
        other.localName = .init("Keyboard")
        #expect(DeviceKind(other) == .nordicUART)
        // A name that only the scan response, or an earlier connection, has given.
        other.localName = nil
        #expect(DeviceKind(other, name: "MeshCore-roof") == .meshCoreCompanion)
        // Anybody may call himself so.
        other.services = []
        #expect(DeviceKind(other, name: "MeshCore-roof") == .unknown)
    }
}
