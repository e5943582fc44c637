// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshWire
import Testing

struct AdvertisingReportTests {
    @Test func `what the radio of the transcripts advertises`() throws {
        let reports = try Transcript("passkey_sc").events().flatMap { event -> [AdvertisingReport] in
            if case .advertisingReports(let reports) = event { reports } else { [] }
        }
        let all = reports.map { AdvertisingData.decode($0.data).data }
        #expect(all.contains { $0.services == [.nordicUART] })
        #expect(all.contains { $0.flags == [.generalDiscoverable, .lowEnergyOnly] })
    }
}
