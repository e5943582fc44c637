// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshDBusTestSupport
import MeshLoop
import MeshTestSupport
import Testing

@testable import MeshBlueZTransport

@Suite(.timeLimit(.minutes(10)))
struct NotificationSocketTests {
    /// A socket under test, and bluetoothd's end of it.
    private static func pair() throws -> (NotificationSocket, peer: Int32) {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &ends) == 0)
        return (NotificationSocket(descriptor: ends[0]), ends[1])
    }

    @Test func `a peer that sends no more has ended, though its socket is open`() async throws {
        try await onLoop { actor in
            let (socket, peer) = try Self.pair()
            let values = Arrival<Data>(actor.loop)
            let ends = Arrival<Bool>(actor.loop)
            let loop = actor.loop
            try socket.open(loop, { value in loop.perform { values.arrive(value) } }, ended: { ends.arrive(true) })
            #expect(send(peer, [1, 2] as [UInt8], 2, 0) == 2)
            #expect(await values.get() == Data([1, 2]))
            shutdown(peer, Int32(SHUT_WR))
            #expect(await ends.get())
            close(peer)
            socket.close()
        }
    }

    @Test func `a peer that sends much leaves others their turn, and loses nothing`() async throws {
        try await onLoop { actor in
            let (socket, peer) = try Self.pair()
            let values = Arrival<Data>(actor.loop)
            let loop = actor.loop
            var sent = 0
            while sent < 200, send(peer, [UInt8(sent)], 1, Int32(MSG_DONTWAIT)) == 1 { sent += 1 }
            try socket.open(loop, { value in loop.perform { values.arrive(value) } }, ended: {})
            for number in 0..<sent { #expect(await values.get() == Data([UInt8(number)])) }
            #expect(sent > 64)
            close(peer)
            socket.close()
        }
    }
}
