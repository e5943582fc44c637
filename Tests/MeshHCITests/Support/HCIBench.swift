// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshBLE
import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

/// The driver on a ``VirtualController``, both on one loop: what most tests of it begin with. Its time is virtual, so that no
/// deadline is missed, or takes any time.
final class HCIBench: Sendable {
    /// Longer than any deadline of the stack (``HCIDeadlines/short``).
    static let phaseTimeout = Duration.milliseconds(2_500)
    static let pairingTimeout = Duration.seconds(4)
    /// Longer than the end of a link may take: what has to be sent, and a supervision timeout.
    static let endTimeout = Duration.seconds(10)

    let loop: EventLoop
    let controller: VirtualController
    let controllers: HCIControllers
    let central: HCICentral
    private let path: String

    init(
        _ loop: EventLoop, _ settings: VirtualController.Settings = .init(), deadlines: HCIDeadlines = .short,
        bonds: String = "", log: LogSink = .none
    ) {
        // As the daemon does: a line may be closed while something is written to it.
        signal(SIGPIPE, SIG_IGN)
        self.loop = loop
        path = FileManager.default.temporaryDirectory.appending(path: "hci-\(UInt64.random(in: 0 ... .max))").path
        controller = VirtualController(loop, path: path, settings)
        controllers = HCIControllers(loop: loop, log: log, deadlines: deadlines)
        central = HCICentral(controllers: controllers, port: .unix(path: path), bondDirectory: bonds)
    }

    /// With radios in range, and the dongle plugged in.
    static func run<Value: Sendable>(
        _ settings: VirtualController.Settings = .init(), radios: [VirtualPeripheral.Settings] = [.init()],
        deadlines: HCIDeadlines = .short, _ body: @Sendable (isolated LoopActor, HCIBench) async throws -> Value
    ) async throws -> Value {
        try await onLoop(time: .virtual) { actor in
            let bench = HCIBench(actor.loop, settings, deadlines: deadlines)
            for radio in radios { await bench.controller.add(radio) }
            try await bench.controller.plugIn()
            do {
                let value = try await body(actor, bench)
                await bench.close()
                return value
            } catch {
                await bench.close()
                throw error
            }
        }
    }

    func close() async {
        await controllers.close()
        await controller.unplug()
    }

    /// The driver itself.
    var host: HCIController {
        get async { await controllers.controller(at: .unix(path: path), bonds: "") }
    }

    /// Returns when the driver can use the controller.
    func poweredOn() async {
        let (states, continuation) = AsyncStream.makeStream(of: BluetoothState.self)
        let observation = await central.observeState { continuation.yield($0) }
        for await state in states where state == .poweredOn { break }
        _ = observation
    }

    func connect(_ radio: VirtualPeripheral.Settings = .init()) async throws -> HCILink {
        let request = GATTConnectRequest(
            target: .address(BLEAddress(radio.address)), passkey: radio.passkey.flatMap { BLEPasskey($0) },
            service: VirtualPeripheral.profile.service)
        guard let link = try await central.connect(request) as? HCILink else { fatalError("not this central's link") }
        return link
    }

    /// An attempt, and the moment when the controller looks for the radio. Its end is what it failed with.
    func beginAttempt(isolation: isolated LoopActor = #isolation) async -> Task<GATTError?, Never> {
        let attempt = Task(executorPreference: loop.taskExecutor) { () -> GATTError? in
            _ = isolation
            do {
                _ = try await self.connect()
                return nil
            } catch {
                return error as? GATTError
            }
        }
        await until(loop) { await controller.initiating != nil }
        return attempt
    }

    /// The two characteristics of the serial service.
    func discover(
        _ link: HCILink
    ) async throws -> (receive: GATTCharacteristic, transmit: GATTCharacteristic) {
        let service = try #require(
            try await link.discoverServices([VirtualPeripheral.profile.service]).first)
        let found = try await link.discoverCharacteristics(of: service)
        return (
            try #require(found.first { $0.uuid == VirtualPeripheral.profile.receive }),
            try #require(found.first { $0.uuid == VirtualPeripheral.profile.transmit })
        )
    }

    /// The transport of the module.
    func transport(
        _ radio: VirtualPeripheral.Settings = .init(), _ change: (inout BLETransportSettings) -> Void = { _ in },
        events: @escaping @Sendable (LinkEvent) -> Void = { _ in }
    ) -> BLETransport {
        var settings = BLETransportSettings(target: .name(radio.name))
        settings.passkey = radio.passkey.flatMap { BLEPasskey($0) }
        settings.bluetoothGrace = Self.phaseTimeout
        settings.connectionTimeout = Self.phaseTimeout
        settings.serviceDiscoveryTimeout = Self.phaseTimeout
        settings.autoReconnectDiscoveryTimeout = Self.phaseTimeout
        settings.pairingTimeout = Self.pairingTimeout
        settings.subscriptionTimeout = Self.phaseTimeout
        settings.writeTimeout = Self.phaseTimeout
        settings.disconnectionTimeout = Self.endTimeout
        change(&settings)
        var central = central
        // As the module does it; the stack's deadlines are shorter otherwise.
        if settings.writeTimeout != Self.phaseTimeout { central.options.writeTimeout = settings.writeTimeout }
        return BLETransport(
            loop: loop, central: central, settings: settings,
            environment: TransportEnvironment(log: .none, linkEvents: events))
    }
}

extension HCIDeadlines {
    /// Shorter than those of the transport, as all others are: what fails is noticed below first.
    static var short: HCIDeadlines {
        var deadlines = HCIDeadlines()
        deadlines.reopening = .milliseconds(5) ... .milliseconds(20)
        deadlines.commands.commandTimeout = .seconds(1)
        deadlines.commands.resetRepetition = .milliseconds(200)
        deadlines.creation.cancelTimeout = .seconds(1)
        deadlines.creation.closeTimeout = .seconds(1)
        deadlines.procedures.procedureTimeout = .seconds(1)
        deadlines.client.transactionTimeout = .milliseconds(1_500)
        deadlines.client.writeTimeout = .milliseconds(1_500)
        deadlines.pairing = .milliseconds(1_500)
        return deadlines
    }
}

/// What a test wants to be true, asked for at each turn of the loop, and when it comes to rest; a test that waits in vain
/// ends by its time limit.
func until(
    _ loop: EventLoop, sourceLocation: SourceLocation = #_sourceLocation, _ condition: () async -> Bool
) async {
    var turns = 0
    while await !condition() {
        if Task.isCancelled {
            Issue.record("waited for in vain", sourceLocation: sourceLocation)
            return
        }
        turns += 1
        // Virtual time stands still for whoever asks: it has to be let go on.
        if loop.time == .virtual, turns.isMultiple(of: 32) {
            try? await loop.sleep(for: .milliseconds(1))
        } else {
            await Task.yield()
        }
    }
}
