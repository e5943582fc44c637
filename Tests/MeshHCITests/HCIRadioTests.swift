// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBLE
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

/// With a radio that echoes, on a controller that speaks H4 at the port that the environment names; with a PIN the link is
/// paired first:
///
///     Tests/Rigs/hci/ble_radio.py --hci unix-server:PATH --security none --name Roof
///     MESHHOST_HCI_PORT=unix:PATH MESHHOST_HCI_RADIO=Roof swift test --filter HCIRadioTests
private let environment = ProcessInfo.processInfo.environment
private let port = environment["MESHHOST_HCI_PORT"].flatMap { HCIPort($0) }
private let radio = environment["MESHHOST_HCI_RADIO"] ?? "Roof"
/// Without it the radio must need no security.
private let pin = environment["MESHHOST_HCI_PIN"].flatMap { BLEPasskey($0) }

@Suite(.serialized, .enabled(if: port != nil, "needs a radio: MESHHOST_HCI_PORT names its controller"))
struct HCIRadioTests {
    private static let profile = GATTSerialProfile.nordicUART

    /// Runs `body` with a link to the radio.
    static func withLink(
        _ loop: EventLoop, _ actor: isolated LoopActor, bonds directory: String = "",
        _ body: (any GATTLink, HCICentral) async throws -> Void
    ) async throws {
        let controllers = HCIControllers(loop: loop, log: .none)
        let central = HCICentral(controllers: controllers, port: try #require(port), bondDirectory: directory)
        do {
            let (states, continuation) = AsyncStream.makeStream(of: BluetoothState.self)
            let observation = await central.observeState { continuation.yield($0) }
            for await state in states where state == .poweredOn { break }
            let link = try await central.connect(
                GATTConnectRequest(target: .name(radio), passkey: pin, service: profile.service))
            if pin != nil {
                let outcome = try await link.pair()
                #expect(outcome.usedPasskey)
                #expect(await link.peer.isBonded)
            }
            try await body(link, central)
            await link.close()
            _ = observation
        } catch {
            await controllers.close()
            throw error
        }
        await controllers.close()
    }

    @Test(.timeLimit(.minutes(10)), arguments: [true, false])
    func `what is written comes back as notifications`(withResponse: Bool) async throws {
        try await onLoop { actor in
            try await Self.withLink(actor.loop, actor) { link, _ in
                let services = try await link.discoverServices([Self.profile.service])
                let service = try #require(services.first)
                let found = try await link.discoverCharacteristics(of: service)
                let receive = try #require(found.first { $0.uuid == Self.profile.receive })
                let transmit = try #require(found.first { $0.uuid == Self.profile.transmit })
                let (values, continuation) = AsyncStream.makeStream(of: Data.self)
                try await link.startNotifications(of: transmit) { continuation.yield($0) }
                #expect(try await link.maximumWriteLength(of: receive) > 20)
                var iterator = values.makeAsyncIterator()
                for count in 1...40 {
                    let value = Data(repeating: UInt8(count), count: count * 4)
                    try await link.write(value, to: receive, withResponse: withResponse)
                    #expect(await iterator.next() == Data("echo:".utf8) + value)
                }
            }
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `a search that is cancelled ends`() async throws {
        try await onLoop { actor in
            try await Self.withLink(actor.loop, actor) { _, central in
                let attempt = Task(executorPreference: actor.loop.taskExecutor) {
                    _ = actor
                    return try await central.connect(
                        GATTConnectRequest(target: .name("nobody"), service: Self.profile.service))
                }
                await Task.yield()
                attempt.cancel()
                await #expect(throws: GATTError.self) { try await attempt.value }
            }
        }
    }

    @Test(.timeLimit(.minutes(10)), .enabled(if: pin != nil, "needs a radio with a PIN"))
    func `a bond outlives the host`() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "hci-\(UInt64.random(in: 0 ... .max))")
            .path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        for _ in 1...2 {
            try await onLoop { actor in
                try await Self.withLink(actor.loop, actor, bonds: directory) { link, _ in
                    // The radio has taken the last keys when it answers.
                    let services = try await link.discoverServices([Self.profile.service])
                    #expect(services.count == 1)
                }
            }
        }
        try await onLoop { actor in
            try await Self.withLink(actor.loop, actor, bonds: directory) { link, central in
                let outcome = try await link.pair()
                #expect(outcome == PairingOutcome(wasBonded: true, usedPasskey: true))
                try await central.removeBond(.name(radio))
                await #expect(throws: GATTError.self) { try await link.discoverServices([Self.profile.service]) }
            }
        }
        let files = try FileManager.default.contentsOfDirectory(atPath: directory)
        #expect(files.count == 1)
        let mode = try FileManager.default.attributesOfItem(atPath: "\(directory)/\(try #require(files.first))")[
            .posixPermissions]
        #expect(mode as? Int == 0o600)
    }
}
