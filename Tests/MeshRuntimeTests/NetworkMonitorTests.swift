// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshRuntime

struct NetworkMonitorTests {
    private static func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: number) { Array($0) }
    }

    private static func message(_ type: UInt16, _ body: [UInt8]) -> [UInt8] {
        let length = 16 + body.count
        let header = bytes(UInt32(length)) + bytes(type) + bytes(UInt16(0)) + bytes(UInt32(0)) + bytes(UInt32(0))
        return header + body + [UInt8](repeating: 0, count: (4 - length % 4) % 4)
    }

    private static func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
        let length = 4 + value.count
        return bytes(UInt16(length)) + bytes(type) + value + [UInt8](repeating: 0, count: (4 - length % 4) % 4)
    }

    private static func address(_ type: UInt16, scope: UInt8 = 0, index: UInt32, _ attributes: [UInt8]) -> [UInt8] {
        message(type, [2, 24, 0x80, scope] + bytes(index) + attributes)
    }

    private static func link(_ type: UInt16, index: UInt32, flags: UInt32) -> [UInt8] {
        message(type, bytes(UInt32(0)) + bytes(index) + bytes(flags) + bytes(UInt32(0)))
    }

    private static let all =
        link(16, index: 3, flags: 0x43) + link(16, index: 3, flags: 0x3) + link(17, index: 4, flags: 0)
        + link(16, index: 1, flags: 0x49)
        + address(
            20, index: 3, attribute(3, [101, 116, 104]) + attribute(1, [10, 0, 0, 1]) + attribute(2, [10, 0, 0, 2]))
        + address(20, scope: 254, index: 1, attribute(1, [127, 0, 0, 1]))
        + address(21, index: 3, attribute(1, [UInt8](repeating: 7, count: 16))) + message(4, []) + message(99, [1])

    private static let expected: [NetworkChange] = [
        .interface(3, isRunning: true), .interface(3, isRunning: false), .interfaceGone(4),
        .addressPresent(interface: 3, address: [10, 0, 0, 2]),
        .addressGone(interface: 3, address: [UInt8](repeating: 7, count: 16)), .lost,
    ]

    @Test func `messages of one datagram are read in order`() {
        #expect(NetlinkDecoder.changes(in: Self.all[...]) == Self.expected)
        // A slice that does not start at 0.
        #expect(NetlinkDecoder.changes(in: ([9, 9, 9] + Self.all).dropFirst(3)) == Self.expected)
    }

    @Test func `a datagram cut anywhere gives what was whole`() {
        for count in 0...Self.all.count {
            let changes = NetlinkDecoder.changes(in: Self.all[..<count])
            #expect(Array(Self.expected.prefix(changes.count)) == changes)
        }
    }

    @Test func `any bytes are survived`() {
        var generator = SplitMix(state: 5)
        for _ in 0..<20_000 {
            var bytes = Self.all
            for _ in 0..<Int.random(in: 1...8, using: &generator) {
                bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            _ = NetlinkDecoder.changes(in: bytes[...])
        }
    }

    @Test func `only what was not known is news`() {
        var state = NetworkState()
        let address = NetworkChange.addressPresent(interface: 3, address: [10, 0, 0, 2])
        #expect(state.take(address) == true)
        #expect(state.take(address) == false)
        #expect(state.take(.addressGone(interface: 3, address: [10, 0, 0, 2])) == false)
        #expect(state.take(address) == true)
        #expect(state.take(.interface(3, isRunning: true)) == true)
        #expect(state.take(.interface(3, isRunning: true)) == false)
        #expect(state.take(.interface(3, isRunning: false)) == false)
        #expect(state.take(.interface(3, isRunning: true)) == true)
        #expect(state.take(.interfaceGone(3)) == false)
        #expect(state.take(address) == true)
        #expect(state.take(.lost) == true)
    }

    @Test func `what is remembered is bounded`() {
        var state = NetworkState()
        for index in 0..<UInt32(20_000) { _ = state.take(.interface(index, isRunning: true)) }
        #expect(state.count <= 4_096)
    }

    @Test func `the watch starts and ends without a trace`() async throws {
        try await Host.run { host in
            try await host.actor.run { _ in
                let monitor = try #require(
                    NetworkMonitor.watch(loop: host.loop, coordinator: host.coordinator, log: .none))
                monitor.stop()
                monitor.stop()
            }
        }
    }
}
