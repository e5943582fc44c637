// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBLE
import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

/// Controllers that fail and come back, as a link that makes itself anew sees them.
struct HCIRecoveryTests {
    enum Trouble: CaseIterable {
        case hardwareError
        /// The line is closed, and is there again at once.
        case restart
        case unplugged
        /// It answers no command, until it is reset.
        case silence
        /// A byte that begins no packet.
        case noise
        /// The radio goes, and comes back.
        case radioLost
    }

    @Test(.timeLimit(.minutes(10)), arguments: Trouble.allCases)
    func `fifty times, the link is back`(trouble: Trouble) async throws {
        var radio = VirtualPeripheral.Settings()
        radio.echoes = true
        var deadlines = HCIDeadlines.short
        deadlines.commands.commandTimeout = .milliseconds(250)
        try await HCIBench.run(radios: [radio], deadlines: deadlines) { [radio] actor, bench in
            let (downs, continuation) = AsyncStream.makeStream(of: MeshError?.self)
            let transport = bench.transport(radio) {
                $0.reconnectsAutomatically = true
                $0.reconnectDelay = .milliseconds(1) ... .milliseconds(5)
                $0.bluetoothGrace = .seconds(5)
            } events: {
                if case .down(let reason) = $0 { continuation.yield(reason) }
            }
            var down = downs.makeAsyncIterator()
            try await transport.connect()
            let handles = actor.loop.openHandles.count
            for round in 1...50 {
                var frames = await transport.receivedData.makeAsyncIterator()
                try await transport.send(Data([UInt8(round)]))
                #expect(await frames.next() == Data([UInt8(round)]))
                try await cause(trouble, bench, transport)
                // With a reason, whatever it was.
                let reason = await down.next()
                #expect(reason??.message.isEmpty == false)
                try await end(trouble, bench)
                await until(actor.loop) { await transport.isConnected }
            }
            #expect(await bench.controller.linkCount == 1)
            await until(actor.loop) { actor.loop.openHandles.count <= handles }
            await transport.disconnect()
            #expect(await bench.host.leftOver(credits: 8) == [])
        }
    }

    private func cause(_ trouble: Trouble, _ bench: HCIBench, _ transport: BLETransport) async throws {
        switch trouble {
        case .hardwareError: await bench.controller.sendHardwareError()
        case .restart: await bench.controller.die()
        case .unplugged: await bench.controller.unplug()
        case .noise: await bench.controller.sendBytes([0xFF])
        case .radioLost: await bench.controller.loseLink(to: VirtualPeripheral.Settings().address)
        case .silence:
            await bench.controller.configure { $0.ignored = [.readRSSI] }
            // Something that needs an answer.
            await bench.host.send(.read(.readRSSI, of: ConnectionHandle(0x40)), .nobody)
        }
    }

    private func end(_ trouble: Trouble, _ bench: HCIBench) async throws {
        switch trouble {
        case .unplugged: try await bench.controller.plugIn()
        case .silence: await bench.controller.heal()
        case .hardwareError, .restart, .noise, .radioLost: break
        }
    }
}
