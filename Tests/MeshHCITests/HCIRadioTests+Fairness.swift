// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBLE
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

/// Of radios in one air, without a PIN: `ble_radio.py --security none --radio name=A --radio name=B ...`.
private let radios =
    ProcessInfo.processInfo.environment["MESHHOST_HCI_RADIOS"]?.split(separator: ",").map(String.init) ?? []
private let port = ProcessInfo.processInfo.environment["MESHHOST_HCI_PORT"].flatMap { HCIPort($0) }

extension HCIRadioTests {
    /// Sends a burst of frames that the radio counts, and asks it for the count. Returns when the answer came, and what it is.
    private static func burst(
        _ link: any GATTLink, _ count: Int, _ loop: EventLoop
    ) async throws -> (frames: UInt32, at: Duration) {
        let profile = GATTSerialProfile.nordicUART
        let service = try #require(try await link.discoverServices([profile.service]).first)
        let found = try await link.discoverCharacteristics(of: service)
        let receive = try #require(found.first { $0.uuid == profile.receive })
        let transmit = try #require(found.first { $0.uuid == profile.transmit })
        let (values, continuation) = AsyncStream.makeStream(of: Data.self)
        try await link.startNotifications(of: transmit) { continuation.yield($0) }
        for _ in 0..<count {
            try await link.write(Data([0xF0]) + Data(count: 119), to: receive, withResponse: false)
        }
        try await link.write(Data([0xF1]), to: receive, withResponse: false)
        for await value in values where value.starts(with: Data("echo:".utf8)) {
            let digits = value.dropFirst(6).prefix(4).reversed()
            return (digits.reduce(0) { $0 << 8 | UInt32($1) }, loop.now)
        }
        throw CancellationError()
    }

    @Test(.timeLimit(.minutes(10)), .enabled(if: radios.count > 1, "needs several radios: MESHHOST_HCI_RADIOS"))
    func `bursts on all links end together, and nothing is lost`() async throws {
        try await onLoop { actor in
            let loop = actor.loop
            let controllers = HCIControllers(loop: loop, log: .none)
            let central = HCICentral(controllers: controllers, port: try #require(port), bondDirectory: "")
            let (states, continuation) = AsyncStream.makeStream(of: BluetoothState.self)
            let observation = await central.observeState { continuation.yield($0) }
            for await state in states where state == .poweredOn { break }
            var links: [any GATTLink] = []
            for name in radios {
                let request = GATTConnectRequest(target: .name(name), service: GATTSerialProfile.nordicUART.service)
                links.append(try await central.connect(request))
            }
            let begin = loop.now
            let tasks = links.map { link in
                Task(executorPreference: loop.taskExecutor) { try await Self.burst(link, 400, loop) }
            }
            var ends: [Duration] = []
            for task in tasks {
                let (frames, end) = try await task.value
                #expect(frames == 400)
                ends.append(end - begin)
            }
            let (first, last) = (try #require(ends.min()), try #require(ends.max()))
            #expect((last - first) / last <= 0.1, "\(ends)")
            for link in links { await link.close() }
            _ = observation
            await controllers.close()
        }
    }
}
