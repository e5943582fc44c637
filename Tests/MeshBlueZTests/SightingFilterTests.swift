// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshBlueZTransport

struct SightingFilterTests {
    private static func seen(_ address: String = "A", name: String = "Roof", rssi: Int? = -60) -> ScanResult {
        ScanResult(address: address, name: name, rssi: rssi, advertisement: [2, 1, 6])
    }

    @Test func `the same again is no news for a while`() {
        var filter = SightingFilter()
        #expect(filter.isNews(Self.seen(), now: .zero))
        #expect(!filter.isNews(Self.seen(), now: .seconds(1)))
        #expect(!filter.isNews(Self.seen(rssi: -63), now: .seconds(2)))
        #expect(filter.isNews(Self.seen(), now: .seconds(5)))
        #expect(!filter.isNews(Self.seen(), now: .seconds(6)))
    }

    @Test func `another device, name or strength is`() {
        var filter = SightingFilter()
        #expect(filter.isNews(Self.seen(), now: .zero))
        #expect(filter.isNews(Self.seen("B"), now: .zero))
        #expect(filter.isNews(Self.seen(name: "Roof 2"), now: .zero))
        #expect(filter.isNews(Self.seen(name: "Roof 2", rssi: -64), now: .zero))
    }

    @Test func `addresses without end take no memory without end`() {
        var filter = SightingFilter()
        for number in 0..<10_000 { #expect(filter.isNews(Self.seen("\(number)"), now: .zero)) }
    }
}
