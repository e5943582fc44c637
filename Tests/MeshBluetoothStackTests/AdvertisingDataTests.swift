// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import Testing

struct AdvertisingDataTests {
    private let uart = AttributeUUID(high: 0x6E40_0001_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)

    @Test func `what the radio of the transcripts advertises`() throws {
        let reports = try Transcript("passkey_sc").events().flatMap { event -> [AdvertisingReport] in
            if case .advertisingReports(let reports) = event { reports } else { [] }
        }
        let all = reports.map { AdvertisingData($0.data) }
        #expect(all.contains { $0.services == [uart] })
        #expect(all.contains { $0.flags == 6 })
    }

    @Test func `fields of all kinds`() {
        // Core Specification Supplement, Part A §1.
        let data = AdvertisingData(
            hex("02 01 06 05 03 0d180f18 03 08 4d43 02 0a fc 05 ff ffff aabb 04 09 4d6573"))
        #expect(data.flags == 6)
        #expect(data.services == [AttributeUUID(0x180D), AttributeUUID(0x180F)])
        #expect(data.name == "Mes")
        #expect(!data.isNameShortened)
        #expect(data.transmitPower == -4)
        #expect(data.manufacturerData == [.init(company: 0xFFFF, data: [0xAA, 0xBB])])
    }

    @Test func `what is cut or empty ends the reading and spoils nothing`() {
        let whole = hex("02 01 06 04 09 4d6573")
        for count in 0...whole.count {
            let data = AdvertisingData(Array(whole.prefix(count)))
            #expect(data.flags == (count < 3 ? nil : 6))
            #expect(data.name == (count < 8 ? nil : "Mes"))
        }
        // Padding of zeros, as radios send it.
        #expect(AdvertisingData(hex("02 01 06 00 00 00")).flags == 6)
        #expect(AdvertisingData(hex("ff 09")) == AdvertisingData())
        #expect(AdvertisingData(hex("02 07 01 02 03 0d 01 09")).services == [])
    }

    @Test func `what this host advertises reads back`() {
        #expect(AdvertisingData(AdvertisingData.announcing(uart)).services == [uart])
        #expect(AdvertisingData.announcing(uart).count <= 31)
        let long = AdvertisingData(AdvertisingData.naming(String(repeating: "ä", count: 20)))
        #expect(long.name == String(repeating: "ä", count: 14))
        #expect(long.isNameShortened)
        #expect(AdvertisingData(AdvertisingData.naming("roof")).name == "roof")
    }
}
