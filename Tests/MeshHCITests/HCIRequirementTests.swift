// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBLE
import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Synchronization
import Testing

@testable import MeshHCITransport

/// What users of other hosts reported, seen on the line to the controller. The handbook's page BluetoothStack lists where each
/// requirement has its tests.
struct HCIRequirementTests {
    private let address = VirtualPeripheral.Settings().address

    @Test(.timeLimit(.minutes(10)))
    func `no link is asked to end after less than 4 s of silence, whatever the radio wants (R24)`() async throws {
        try await HCIBench.run { actor, bench in
            await bench.poweredOn()
            let link = try await bench.connect()
            // What is asked for during the set-up waits for its end.
            try await link.startNotifications(of: try await bench.discover(link).transmit) { _ in }
            // What MeshCore's nRF52 radios ask for is 2 s; kernels choose 420 ms.
            for (interval, timeout) in [(12, 200), (16, 42), (20, 600)] as [(UInt16, UInt16)] {
                let before = await bench.controller.supervisionTimeouts.count
                await bench.controller.askForParameters(
                    address,
                    .init(
                        minimumInterval: interval, maximumInterval: interval, latency: 4, supervisionTimeout: timeout))
                await until(actor.loop) { await bench.controller.supervisionTimeouts.count > before }
            }
            await until(actor.loop) { await bench.controller.supervisionTimeouts.last == 600 }
            let asked = await bench.controller.supervisionTimeouts
            #expect(asked.count >= 4)
            #expect(asked.allSatisfy { $0 >= 400 })
            await link.close()
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `data of an ended link is nothing of the next one with its handle (R28)`() async throws {
        try await HCIBench.run { actor, bench in
            await bench.poweredOn()
            let received = Mutex<[[UInt8]]>([])
            var last: ConnectionHandle?
            for round in 0..<20 {
                await bench.controller.configure { $0.nextHandle = 0x40 }
                let link = try await bench.connect()
                #expect(last == nil || last == link.handle)
                last = link.handle
                let transmit = try await bench.discover(link).transmit
                try await link.startNotifications(of: transmit) { value in received.withLock { $0.append(Array(value)) }
                }
                let handle = link.handle
                await bench.controller.configure { controller in
                    // A value, the start of another, and the end of the link; then a value that is late.
                    controller.notify(address, [[UInt8(round)]])
                    for payload: [UInt8] in [[5, 0, 4, 0, 0x1B, 5], [5, 0, 4, 0, 0x1B, 5, 0, 0xEE, 0xEE]] {
                        controller.send(
                            ControllerPacket(
                                ACLPacket(handle: handle, boundary: .firstFromController, payload: payload)))
                        controller.loseLinks(.connectionTimeout)
                    }
                }
                await until(actor.loop) { await link.end != nil }
            }
            #expect(received.withLock { $0 } == (0..<20).map { [UInt8($0)] })
            #expect(await bench.host.leftOver(credits: 8) == [])
        }
    }

    @Test(.timeLimit(.minutes(10)), arguments: [1, 2])
    func `one buffer carries frames of any length (R27)`(buffers: UInt8) async throws {
        var settings = VirtualController.Settings()
        settings.bufferCount = buffers
        settings.bufferLength = 27
        settings.pieceLength = 27
        var radio = VirtualPeripheral.Settings()
        radio.echoes = true
        try await HCIBench.run(settings, radios: [radio]) { [radio] actor, bench in
            await bench.poweredOn()
            let link = try await bench.connect(radio)
            let found = try await bench.discover(link)
            let (values, continuation) = AsyncStream.makeStream(of: Data.self)
            try await link.startNotifications(of: found.transmit) { continuation.yield($0) }
            var iterator = values.makeAsyncIterator()
            for length in [1, 20, 23, 24, 180, 509] {
                let value = Data(repeating: UInt8(truncatingIfNeeded: length), count: length)
                try await link.write(value, to: found.receive, withResponse: length % 2 == 0)
                #expect(await iterator.next() == value)
            }
            #expect(await bench.controller.overruns == 0)
            await link.close()
        }
    }

    @Test(.timeLimit(.minutes(10)), arguments: [Duration.seconds(1), .seconds(5), .seconds(20)])
    func `a frame has the time that the settings give it, and its link ends when it is over`(
        timeout: Duration
    ) async throws {
        try await HCIBench.run(deadlines: HCIDeadlines()) { actor, bench in
            let loop = actor.loop
            let (downs, continuation) = AsyncStream.makeStream(of: (reason: MeshError?, at: Duration).self)
            let transport = bench.transport(.init(), { $0.writeTimeout = timeout }) {
                if case .down(let reason) = $0 { continuation.yield((reason, loop.now)) }
            }
            var down = downs.makeAsyncIterator()
            try await transport.connect()
            try await loop.sleep(for: .seconds(1))
            await bench.controller.configure { $0.framesUntilSilence = 0 }
            let begin = loop.now
            let error = await #expect(throws: MeshError.self) { try await transport.send(Data([1, 2, 3])) }
            #expect(error?.code == .operationTimeout)
            #expect(error?.message.contains("still up") == false)
            let end = try #require(await down.next())
            #expect(end.reason?.code == .linkClosed)
            // Virtual time: neither much earlier nor, a closing and its 7 s aside, later.
            #expect(end.at - begin > timeout - .milliseconds(200) && end.at - begin < timeout + .seconds(8))
            await transport.disconnect()
        }
    }

    @Test(.timeLimit(.minutes(10))) func `data does not wait for an encryption that the controller refuses`()
        async throws
    {
        try await HCIBench.run { actor, bench in
            await bench.poweredOn()
            let link = try await bench.connect()
            let handle = link.handle
            await bench.controller.configure { $0.refusals[.enableEncryption] = .commandDisallowed }
            // Paired on the link; the new keys are to encrypt it.
            await bench.controller.askForSecurity(address)
            await until(actor.loop) { await bench.controller.commands.contains(.enableEncryption) }
            await until(actor.loop) { await bench.host.here { $0.inbound.passes(handle) } }
            let services = try await link.discoverServices([VirtualPeripheral.profile.service])
            #expect(services.count == 1)
            await link.close()
        }
    }

    /// How many packets wait in the controller before the host waits for the first to be done.
    @Test(.timeLimit(.minutes(10)))
    func `writes without an answer fill the controller's buffers`() async throws {
        try await HCIBench.run { actor, bench in
            await bench.poweredOn()
            let link = try await bench.connect()
            let receive = try await bench.discover(link).receive
            await bench.controller.configure {
                $0.arrivals = []
                $0.settings.credits = .whenTold
            }
            for _ in 0..<8 { try await link.write(Data(count: 200), to: receive, withResponse: false) }
            await until(actor.loop) { await bench.controller.arrivals.count == 8 }
            await bench.controller.completeAndFlush(8)
            await link.close()
            #expect(await bench.host.leftOver(credits: 8) == [])
        }
    }
}
