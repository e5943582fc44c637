// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

/// Lines on socket pairs, whose other end stands for the controller.
struct HCILineTests {
    private static func pair(_ type: __socket_type) throws -> (host: Int32, controller: Int32) {
        var ends: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(type.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0, &ends) == 0)
        return (ends[0], ends[1])
    }

    private static func send(_ bytes: [UInt8], _ descriptor: Int32) {
        #expect(bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) } == bytes.count)
    }

    /// One packet; nil when there is none.
    private static func receive(_ descriptor: Int32) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 70_000)
        let count = read(descriptor, &buffer, buffer.count)
        return count > 0 ? Array(buffer[..<count]) : nil
    }

    private static func acl(_ number: Int, _ length: Int) -> HCIPacket {
        HCIPacket(kind: .acl, bytes: [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: length))
    }

    private static func copy(_ kind: HCIPacketKind, _ bytes: RawSpan) -> HCIPacket {
        HCIPacket(kind: kind, bytes: bytes.withUnsafeBytes { Array($0) })
    }

    @Test func `on a socket of packets each packet is one read, and each read one packet`() async throws {
        try await onLoop { actor in
            let (host, controller) = try Self.pair(SOCK_SEQPACKET)
            let line = PacketLine(actor.loop, descriptor: host) { close(host) }
            let (packets, continuation) = AsyncStream.makeStream(of: HCIPacket.self)
            line.startReading(
                { continuation.yield(Self.copy($0, $1)) }, onPause: {}, onEnd: { _ in continuation.finish() })
            try line.send([HCIPacket(kind: .command, bytes: [3, 0x0C, 0]), Self.acl(7, 9), Self.acl(8, 65_539)])
            #expect(Self.receive(controller) == [1, 3, 0x0C, 0])
            #expect(Self.receive(controller) == [2] + [UInt8](repeating: 7, count: 9))
            #expect(Self.receive(controller)?.count == 65_540)
            #expect(Self.receive(controller) == nil)
            // A kind that nobody knows is passed over.
            for packet: [UInt8] in [[4, 0x0E, 1, 0], [9, 9], [2, 1, 0, 0, 0]] { Self.send(packet, controller) }
            close(controller)
            var heard: [HCIPacket] = []
            for await packet in packets { heard.append(packet) }
            #expect(
                heard == [HCIPacket(kind: .event, bytes: [0x0E, 1, 0]), HCIPacket(kind: .acl, bytes: [1, 0, 0, 0])])
            await line.close()
        }
    }

    @Test func `what a full socket does not take is sent in order when there is room`() async throws {
        try await onLoop { actor in
            let (host, controller) = try Self.pair(SOCK_SEQPACKET)
            let line = PacketLine(actor.loop, descriptor: host) { close(host) }
            line.startReading({ _, _ in }, onPause: {}, onEnd: { _ in })
            // Far more than the socket holds.
            let count = 700
            for number in 0..<count { try line.send([Self.acl(number, 1_000)]) }
            let other = PacketLine(actor.loop, descriptor: controller) { close(controller) }
            let (packets, continuation) = AsyncStream.makeStream(of: HCIPacket.self)
            other.startReading(
                { continuation.yield(Self.copy($0, $1)) }, onPause: {}, onEnd: { _ in continuation.finish() })
            var received: [HCIPacket] = []
            for await packet in packets {
                received.append(packet)
                if received.count == count { break }
            }
            #expect(received == (0..<count).map { Self.acl($0, 1_000) })
            await line.close()
            await other.close()
        }
    }

    @Test func `a line that takes nothing is given up before memory is`() async throws {
        try await onLoop { actor in
            let (host, controller) = try Self.pair(SOCK_SEQPACKET)
            let line = PacketLine(actor.loop, descriptor: host) { close(host) }
            line.startReading({ _, _ in }, onPause: {}, onEnd: { _ in })
            var sent = 0
            #expect(throws: MeshError.lineStuck) {
                while sent < 10 << 20 {
                    try line.send([Self.acl(0, 4_000)])
                    sent += 4_000
                }
            }
            #expect(sent < 4 << 20)
            await line.close()
            close(controller)
        }
    }

    @Test func `the adapter is given back once, and nothing comes after that`() async throws {
        try await onLoop { actor in
            let (host, controller) = try Self.pair(SOCK_SEQPACKET)
            let (ends, continuation) = AsyncStream.makeStream(of: Void.self)
            let line = PacketLine(actor.loop, descriptor: host) {
                close(host)
                continuation.yield()
            }
            line.startReading(
                { _, _ in Issue.record("a packet after the end") }, onPause: { Issue.record("a pause after the end") },
                onEnd: { _ in Issue.record("an end after the end") })
            Self.send([4, 0x0E, 1, 0], controller)
            await line.close()
            await line.close()
            continuation.finish()
            var count = 0
            for await _ in ends { count += 1 }
            #expect(count == 1)
            // The kernel has closed it.
            #expect(
                [UInt8(1)].withUnsafeBytes { Glibc.send(controller, $0.baseAddress, 1, Int32(MSG_NOSIGNAL)) }
                    < 0)
            close(controller)
        }
    }
}
