// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshLoop
import MeshStream
import MeshTCPTransport
import MeshTransportAPI
import Synchronization
import Testing

struct TCPTransportTests {
    @Test func `an IPv6 radio is reached`() async throws {
        try await withTCP(host: "::1") { transport, peer, events in
            try await transport.connect()
            let up = await events.next { if case .up(let info) = $0 { info } else { nil } }
            #expect(up == LinkInfo(maximumFrameLength: 176, peer: "[::1]:\(peer.port)"))
            try await transport.send(Data([1, 3]))
            #expect(try await peer.receiveFrame() == [1, 3])
        }
    }

    @Test func `a name leads to the address that answers`() async throws {
        // localhost is ::1 as well where the machine has IPv6; the radio listens on 127.0.0.1 only.
        try await withTCP(connectTo: "localhost") { transport, peer, _ in
            try await transport.connect()
            #expect(await transport.diagnostics()["address"] == .string("127.0.0.1:\(peer.port)"))
        }
    }

    @Test func `a refused connection says so and what to look at`() async throws {
        try await withTCP { transport, peer, events in
            await peer.stop()
            let error = await meshError { try await transport.connect() }
            #expect(error?.code == .connectionRefused)
            #expect(
                error?.message
                    == "127.0.0.1:\(peer.port) refused the connection; is the radio's WiFi companion on, and the port right?"
            )
            #expect(error?.cause is LoopError)
            #expect(await transport.diagnostics()["last_error"] == "link.refused")
        }
    }

    @Test func `a name without address is told from a radio that is away`() async throws {
        try await withTCP(connectTo: "radio.invalid") { transport, _, _ in
            let error = await meshError { try await transport.connect() }
            #expect(error?.code == .hostNotFound)
            #expect(error?.message.contains("radio.invalid has no address") == true)
        }
    }

    @Test func `a look-up that takes too long is not blamed on the radio`() async throws {
        try await withTCP(connectTo: "radio.invalid", adjust: { $0.connectTimeout = .milliseconds(50) }) {
            transport, _, _ in
            // All threads of libuv's pool wait, four of them (its default), so the look-up does not begin.
            let threads = 4
            final class Waiting: Sendable { let count = Mutex(0) }
            let waiting = Waiting()
            var gate: [Int32] = [0, 0]
            #expect(pipe(&gate) == 0)
            let (exit, entry) = (gate[0], gate[1])
            let loop = transport.loop
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<threads {
                    group.addTask {
                        await loop.blocking {
                            waiting.count.withLock { $0 += 1 }
                            var byte: UInt8 = 0
                            _ = read(exit, &byte, 1)
                        }
                    }
                }
                while waiting.count.withLock({ $0 }) < threads { await Task.yield() }
                let error = await meshError { try await transport.connect() }
                close(entry)
                try await group.waitForAll()
                #expect(error?.code == .hostNotFound)
                #expect(error?.disposition == .transient)
                #expect(error?.message.contains("the look-up of radio.invalid took longer than 50ms") == true)
            }
            close(exit)
        }
    }

    @Test func `a radio that does not answer costs connect_timeout and no more`() async throws {
        try await withTCP(adjust: { $0.connectTimeout = .milliseconds(80) }) { transport, peer, _ in
            try await peer.holdConnections()
            let error = await meshError { try await transport.connect() }
            #expect(error?.code == .connectionTimeout)
            #expect(error?.message.contains("within 80ms") == true)
            try await peer.acceptConnections()
            // On a machine that stands still meanwhile 80 ms may not be enough: then once more.
            while let error = await meshError({ try await transport.connect() }) {
                #expect(error.code == .connectionTimeout)
            }
        }
    }

    @Test func `attempts that are cancelled leave nothing behind`() async throws {
        try await withTCP { transport, peer, _ in
            try await peer.holdConnections()
            for _ in 0..<100 {
                let attempt = Task { try await transport.connect() }
                await Task.yield()
                attempt.cancel()
                #expect(await meshError { try await attempt.value }?.code == .cancelled)
            }
            #expect(await LoopActor(transport.loop).run { $0.loop.openHandles } == [])
        }
    }

    @Test func `a radio that takes no data ends the link after write_timeout`() async throws {
        let adjust: (inout TCPSettings) -> Void = {
            $0.writeTimeout = .milliseconds(100)
            $0.maximumFrame = 512
        }
        try await withTCP(adjust: adjust) { transport, peer, events in
            try await transport.connect()
            try await peer.stopReading()
            let frame = Data(repeating: 1, count: 512)
            var error: MeshError?
            while error == nil { error = await meshError { try await transport.send(frame) } }
            #expect(error?.code == .operationTimeout)
            let reason = await events.nextDown()
            #expect(reason?.code == .operationTimeout)
            #expect(reason?.message.contains("took no data in time") == true)
            #expect(await !transport.isConnected)
        }
    }

    @Test func `frames are found in a broken stream, and the rest is counted`() async throws {
        try await withTCP { transport, peer, events in
            try await transport.connect()
            let stream = await transport.receivedData
            // Boot text; a CURR_TIME too short for its code, then whole; an oversized length; OK.
            try await peer.sendBytes(Array("ets Jul 29 2019\r\n".utf8))
            try await peer.sendBytes([0x3E, 3, 0, 9, 0x80, 0, 0x3E, 5, 0, 9, 0x80, 0, 0x92, 0x65])
            try await peer.sendBytes([0x3E, 0xFF, 0xFF, 0x3E, 1, 0, 0])
            var frames: [Data] = []
            for await frame in stream {
                frames.append(frame)
                if frames.count == 2 { break }
            }
            #expect(frames == [Data([9, 0x80, 0, 0x92, 0x65]), Data([0])])
            var skipped = 0
            while skipped < 26 {
                skipped += await events.next { if case .bytesSkipped(let count) = $0 { count } else { nil } } ?? 0
            }
            #expect(skipped == 26)
            #expect(await transport.diagnostics()["bad_frames"] == 2)
        }
    }

    @Test func `a lost byte does not swallow the next frame`() async throws {
        try await withTCP(adjust: { $0.partialFrameTimeout = .milliseconds(20) }) { transport, peer, events in
            try await transport.connect()
            let stream = await transport.receivedData
            try await peer.sendBytes([0x3E, 5, 0, 9, 1, 2, 3])
            #expect(await events.next { if case .bytesSkipped(let count) = $0 { count } else { nil } } == 7)
            try await peer.sendFrame([0x0A])
            var frames = stream.makeAsyncIterator()
            #expect(await frames.next() == Data([0x0A]))
            #expect(await LoopActor(transport.loop).run { $0.loop.openHandles.filter { $0 == "timer" }.count } == 1)
        }
    }

    @Test func `a slow consumer leaves the socket unread instead of losing frames`() async throws {
        try await withTCP { transport, peer, _ in
            try await transport.connect()
            let stream = await transport.receivedData
            for number in 0..<3_000 {
                try await peer.sendFrame([0x88, 0, 0, UInt8(number & 0xFF), UInt8(number >> 8)])
            }
            // The frames are in the kernel or in the inbox by now, which holds 1024 and one read more.
            var number = 0
            for await frame in stream {
                #expect(frame == Data([0x88, 0, 0, UInt8(number & 0xFF), UInt8(number >> 8)]))
                number += 1
                if number == 3_000 { break }
            }
            let paused = await transport.diagnostics()["reading_paused"]?.intValue ?? 0
            #expect(paused > 0)
        }
    }

    @Test func `a radio that is taken by another host says so`() async throws {
        try await withTCP { transport, peer, events in
            try await transport.connect()
            let rival = TCPTransport(
                loop: transport.loop, settings: TCPSettings(endpoint: TCPEndpoint(host: "127.0.0.1", port: peer.port)),
                environment: TransportEnvironment(log: .none, linkEvents: { _ in }))
            try await rival.connect()
            let reason = await events.nextDown()
            #expect(reason?.code == .linkClosedByPeer)
            #expect(reason?.message.contains("another host may have taken the radio") == true)
            await rival.disconnect()
        }
    }
}
