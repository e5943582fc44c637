// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBLE
import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import Synchronization
import Testing

@testable import MeshHCITransport

/// Several links on one controller.
struct HCIFairnessTests {
    private static let radios = (0..<8).map { number in
        var radio = VirtualPeripheral.Settings()
        radio.address = DeviceAddress(0xC011_2233_4400 + UInt64(number), .random)
        radio.name = "Radio \(number)"
        return radio
    }

    private static func frame(_ number: Int) -> [UInt8] {
        [UInt8(number & 0xFF), UInt8(number >> 8)] + [UInt8](repeating: 0x55, count: 98)
    }

    /// Buffers, and when they come back.
    @Test(
        .timeLimit(.minutes(10)),
        arguments: [(1, VirtualController.Credits.atOnce), (4, .atOnce), (8, .together(5)), (16, .together(16))])
    func `eight bursts at once are written whole, each at the same pace`(
        buffers: Int, credits: VirtualController.Credits
    ) async throws {
        let count = 100
        var settings = VirtualController.Settings()
        settings.bufferCount = UInt8(buffers)
        settings.bufferLength = 27
        try await HCIBench.run(settings, radios: Self.radios) { actor, bench in
            await bench.poweredOn()
            var links: [(link: HCILink, receive: GATTCharacteristic)] = []
            for radio in Self.radios {
                let link = try await bench.connect(radio)
                links.append((link, try await bench.discover(link).receive))
            }
            await bench.controller.configure {
                $0.arrivals = []
                $0.settings.credits = credits
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (link, receive) in links {
                    group.addTask(executorPreference: actor.loop.taskExecutor) {
                        for number in 0..<count {
                            try await link.write(Data(Self.frame(number)), to: receive, withResponse: false)
                        }
                    }
                }
                try await group.waitForAll()
            }
            let expected = (0..<count).map(Self.frame)
            await until(actor.loop) { await bench.controller.frameCount == 8 * count }
            for radio in Self.radios { #expect(await bench.controller.frames(to: radio.address) == expected) }
            // When the first has sent everything, no other is more than a tenth behind.
            let arrivals = await bench.controller.arrivals
            let each = arrivals.count / links.count
            var counts: [ConnectionHandle: Int] = [:]
            for handle in arrivals {
                counts[handle, default: 0] += 1
                if counts[handle] == each { break }
            }
            #expect(counts.count == links.count)
            #expect(counts.values.allSatisfy { $0 * 10 >= each * 9 }, "\(counts) of \(each)")
            #expect(await bench.controller.overruns == 0)
            for (link, _) in links { await link.close() }
            #expect(await bench.host.leftOver(credits: buffers) == [])
        }
    }

    @Test(.timeLimit(.minutes(10))) func `eight bursts of notifications come whole and in order`() async throws {
        let count = 200
        var settings = VirtualController.Settings()
        settings.pieceLength = 27
        try await HCIBench.run(settings, radios: Self.radios) { actor, bench in
            await bench.poweredOn()
            let received = Mutex<[Int: [[UInt8]]]>([:])
            var links: [HCILink] = []
            for (number, radio) in Self.radios.enumerated() {
                let link = try await bench.connect(radio)
                links.append(link)
                let transmit = try await bench.discover(link).transmit
                try await link.startNotifications(of: transmit) { value in
                    received.withLock { $0[number, default: []].append(Array(value)) }
                }
            }
            let expected = (0..<count).map(Self.frame)
            for start in stride(from: 0, to: count, by: 20) {
                for radio in Self.radios {
                    await bench.controller.notify(radio.address, Array(expected[start..<start + 20]))
                }
            }
            await until(actor.loop) { received.withLock { $0.values.reduce(0) { $0 + $1.count } } == 8 * count }
            for number in Self.radios.indices { #expect(received.withLock { $0[number] } == expected) }
            for link in links { await link.close() }
        }
    }
}
