// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
import MeshTransportAPI
import Testing

struct SightingFilterTests {
    private static func seen(_ address: String = "A", name: String = "Roof", rssi: Int? = -60) -> ScanResult {
        ScanResult(address: address, name: name, rssi: rssi, advertisement: [2, 1, 6])
    }

    @Test func `the same again is no news for a while`() {
        var filter = SightingFilter()
        expect(filter.isNews(Self.seen(), now: .zero), is: true)
        expect(filter.isNews(Self.seen(), now: .seconds(1)), is: false)
        expect(filter.isNews(Self.seen(rssi: -63), now: .seconds(2)), is: false)
        expect(filter.isNews(Self.seen(), now: .seconds(5)), is: true)
        expect(filter.isNews(Self.seen(), now: .seconds(6)), is: false)
    }

    @Test func `another device, name or strength is`() {
        var filter = SightingFilter()
        expect(filter.isNews(Self.seen(), now: .zero), is: true)
        expect(filter.isNews(Self.seen("B"), now: .zero), is: true)
        expect(filter.isNews(Self.seen(name: "Roof 2"), now: .zero), is: true)
        expect(filter.isNews(Self.seen(name: "Roof 2", rssi: -64), now: .zero), is: true)
    }

    @Test func `addresses without end take no memory without end`() {
        var filter = SightingFilter()
        for number in 0..<10_000 { expect(filter.isNews(Self.seen("\(number)"), now: .zero), is: true) }
    }
}
