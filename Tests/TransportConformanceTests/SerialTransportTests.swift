// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshLoop
import MeshStream
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshSerialTransport

struct SerialTransportTests {
    private static func device(_ path: String) -> TransportSettings {
        let (values, _) = SerialSettings.options.resolve(["path": .string(path)])
        return TransportSettings(
            device: "roof", options: values, written: [:], environment: TransportEnvironment(log: .none) { _ in })
    }

    @Test func `frames go both ways`() async throws {
        try await withSerial { transport, peer, events in
            try await transport.connect()
            let up = await events.next { if case .up(let info) = $0 { info } else { nil } }
            #expect(up == LinkInfo(maximumFrameLength: 176, peer: peer.path))
            try await transport.send(Data([1, 3]))
            #expect(try await peer.receiveFrame() == [1, 3])
            var frames = await transport.receivedData.makeAsyncIterator()
            try await peer.sendFrame([0x83])
            #expect(await frames.next() == Data([0x83]))
            #expect(await transport.diagnostics()["board"] == "unknown board")
        }
    }

    @Test func `boot text and broken frames are passed over, and the frame inside one is found`() async throws {
        try await withSerial(adjust: { $0.partialFrameTimeout = .milliseconds(50) }) { transport, peer, events in
            try await transport.connect()
            var frames = await transport.receivedData.makeAsyncIterator()
            try await peer.sendBytes(Array("ESP-ROM:esp32s3-20210327\r\nBuild:Mar 27 2021\r\n".utf8))
            try await peer.sendFrame([0x83])
            #expect(await frames.next() == Data([0x83]))
            // A short write of the USB stack has put a whole new frame behind the header of another one.
            try await peer.sendBytes([0x3E, 148, 0])
            try await peer.sendFrame([0x0A])
            #expect(await frames.next() == Data([0x0A]))
            let skipped = await events.next { if case .bytesSkipped(let count) = $0 { count } else { nil } }
            #expect(skipped ?? 0 > 0)
        }
    }

    @Test func `an unplugged radio is noticed at once, and reported when it is back`() async throws {
        try await withSerial { transport, peer, events in
            for _ in 0..<3 {
                try await transport.connect()
                await peer.unplug()
                let reason = await events.nextDown()
                #expect(reason?.code == .adapterUnavailable)
                #expect(reason?.message.contains("was unplugged") == true)
                let error = await meshError { try await transport.connect() }
                #expect(error?.code == .adapterUnavailable)
                #expect(error?.message.hasPrefix("\(peer.path) is not there; plug the radio in") == true)
                try await peer.plugIn()
                let isBack = await events.next { if case .adapter(let isThere) = $0 { isThere } else { nil } }
                #expect(isBack == true)
            }
            try await transport.connect()
        }
    }

    @Test func `a port that hangs up while its device is there is told from one that was unplugged`() async throws {
        try await withSerial { transport, peer, events in
            try await transport.connect()
            // The name stays, as with a cable that makes contact again at once.
            try await peer.close()
            let reason = await events.nextDown()
            #expect(reason?.code == .linkClosed || reason?.code == .adapterUnavailable)
        }
    }

    @Test func `a second link to a port is refused, and the holder named`() async throws {
        try await withSerial { transport, peer, _ in
            try await transport.connect()
            let watcher = transport.watcher
            let second = SerialTransport(
                loop: transport.loop, settings: transport.settings, watcher: watcher,
                environment: TransportEnvironment(log: .none) { _ in })
            let error = await meshError { try await second.connect() }
            #expect(error?.code == .connectionRefused)
            #expect(error?.disposition == .transient)
            #expect(error?.message.contains("in use by another link of this process") == true)
            await transport.disconnect()
            try await second.connect()
            await second.disconnect()
            _ = peer
        }
    }

    @Test func `what is no serial port is a fault of the configuration`() async throws {
        for path in ["/dev/full", "/etc/passwd"] {
            try await withSerial(adjust: { $0.choice = .path(path) }) { transport, _, _ in
                let error = await meshError { try await transport.connect() }
                #expect(error?.code == .configurationInvalid)
                #expect(error?.message.contains("this is no serial port") == true)
            }
        }
    }

    @Test func `the lines are tried the other way when nothing answers`() async throws {
        try await withSerial(adjust: { $0.answerTimeout = .milliseconds(30) }) { transport, peer, _ in
            try await transport.connect()
            #expect(await transport.diagnostics()["dtr"] == true)
            try await transport.send(Data([22, 3]))
            while await transport.diagnostics()["dtr"] == true { await Task.yield() }
            try await peer.sendFrame([0x83])
            var frames = await transport.receivedData.makeAsyncIterator()
            #expect(await frames.next() == Data([0x83]))
            await transport.disconnect()
            try await transport.connect()
            // What has got an answer is kept.
            #expect(await transport.diagnostics()["dtr"] == false)
        }
    }

    @Test func `a device that takes no data ends the link after write_timeout`() async throws {
        let adjust: (inout SerialSettings) -> Void = {
            $0.writeTimeout = .milliseconds(100)
            $0.maximumFrame = 512
        }
        try await withSerial(adjust: adjust) { transport, peer, events in
            try await transport.connect()
            await peer.stall()
            let frame = Data(repeating: 7, count: 512)
            let error = await meshError { while true { try await transport.send(frame) } }
            #expect(error?.code == .operationTimeout)
            #expect(await events.nextDown()?.code == .operationTimeout)
        }
    }

    @Test func `attempts that are cancelled leave nothing behind`() async throws {
        try await withSerial(adjust: { $0.bootDelay = .seconds(8) }) { transport, _, _ in
            for _ in 0..<50 {
                let attempt = Task { try await transport.connect() }
                await Task.yield()
                attempt.cancel()
                #expect(await meshError { try await attempt.value }?.code == .cancelled)
            }
            // The radio's own.
            #expect(await LoopActor(transport.loop).run { $0.loop.openHandles } == ["poll"])
        }
    }

    @Test func `a thousand attempts without a port leave nothing behind`() async throws {
        try await withSerial { transport, peer, _ in
            await peer.unplug()
            for _ in 0..<1_000 {
                #expect(await meshError { try await transport.connect() }?.code == .adapterUnavailable)
            }
            // One wait for the port, which may have begun to watch a folder, and nothing of those before it.
            let handles = await LoopActor(transport.loop).run { $0.loop.openHandles }
            #expect([["timer"], ["poll", "timer"]].contains(handles), "\(handles)")
        }
    }

    @Test func `an examination says what is wrong with a port, and opens none`() async throws {
        try await onLoop { actor in
            let terminal = try PseudoTerminal(actor.loop)
            let factory = SerialTransportFactory(loop: actor.loop)
            let free = await factory.examine([Self.device(terminal.path)]).first
            #expect(free?.severity == .ok)
            #expect(free?.subject == "roof")
            let folder = await factory.examine([Self.device("/dev")]).first
            #expect(folder?.severity == .problem)
            #expect(folder?.message == "/dev is no serial port")
            let missing = await factory.examine([Self.device("/dev/serial/by-id/nothing")]).first
            #expect(missing?.severity == .problem)
            #expect(missing?.advice?.hasPrefix("plug the radio in") == true)
            await factory.close()
        }
    }

    @Test func `a scan tells what is there, and ends when nobody looks`() async throws {
        try await onLoop { actor in
            let factory = SerialTransportFactory(loop: actor.loop)
            let scan = try await factory.scan()
            let task = Task { for try await _ in scan {} }
            task.cancel()
            _ = await task.result
            await factory.close()
        }
    }
}
