// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshLoop
import MeshTransportAPI

@testable import MeshBLE
@testable import MeshHCITransport

/// One attempt with a fault in it, and the one after it.
struct HCIFaultTrial: Sendable {
    /// When phases were entered, and what the driver said.
    private actor Diary {
        nonisolated let loop: EventLoop
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
        private let begin: Duration
        private var entries: [(phase: LinkPhase, at: Duration)] = []
        private(set) var notices: [String] = []

        init(_ loop: EventLoop) {
            self.loop = loop
            begin = loop.now
        }

        nonisolated var log: LogSink {
            LogSink(threshold: .notice) { _, message, fields in
                self.assumeIsolated { diary in
                    let text = fields.map { "\($0)=\($1)" }.joined(separator: " ")
                    diary.notices.append("\(diary.loop.now - diary.begin): \(message) \(text)")
                }
            }
        }

        nonisolated func note(_ event: LinkEvent) {
            guard case .phase(let phase) = event else { return }
            assumeIsolated { $0.entries.append((phase, loop.now)) }
        }

        /// Phases that lasted longer than they may, as texts.
        func overdue(_ limits: [LinkPhase: Duration]) -> [String] {
            zip(entries, entries.dropFirst()).compactMap { entry, next in
                guard let limit = limits[entry.phase], next.at - entry.at > limit else { return nil }
                return "\(entry.phase) lasted \(next.at - entry.at)"
            }
        }
    }

    private let loop: EventLoop
    private let way: HCIFaultTests.Way
    private let bench: HCIBench
    private let transport: BLETransport
    private let diary: Diary

    init(_ loop: EventLoop, _ way: HCIFaultTests.Way) {
        self.loop = loop
        self.way = way
        let diary = Diary(loop)
        self.diary = diary
        bench = HCIBench(loop, log: diary.log)
        transport = bench.transport(
            Self.radio(way), { $0.staleBondRepairs = 10 }, events: { diary.note($0) })
    }

    private static func radio(_ way: HCIFaultTests.Way) -> VirtualPeripheral.Settings {
        var radio = VirtualPeripheral.Settings()
        radio.passkey = way == .open ? nil : 123_456
        return radio
    }

    /// The packets of the way without a fault.
    func record() async throws -> [ControllerPacket] {
        try await prepare()
        let first = await bench.controller.sent.count
        try await transport.connect()
        let packets = Array(await bench.controller.sent[first...])
        await transport.disconnect()
        await bench.close()
        return packets
    }

    /// What was not as it has to be.
    func run(_ fault: VirtualController.Fault, at index: Int) async -> [String] {
        await run { $0.setFault(fault, at: $0.sent.count + index) }
    }

    func run(closingAfter count: Int) async -> [String] {
        await run { $0.setBytesUntilDeath(count) }
    }

    private func prepare() async throws {
        await bench.controller.add(Self.radio(way))
        try await bench.controller.plugIn()
        guard way == .bonded else { return }
        try await transport.connect()
        await transport.disconnect()
    }

    private func run(_ arm: @Sendable (isolated VirtualController) -> Void) async -> [String] {
        var troubles: [String] = []
        do {
            try await prepare()
            await arm(bench.controller)
            if let error = await failure() {
                // Where, for whoever reads it.
                if !error.message.hasPrefix("while ") { troubles.append("no phase in: \(error.message)") }
                if error.code.disposition != .transient { troubles.append("not tried again: \(error.message)") }
            }
            if await bench.controller.isFaultPending { troubles.append("the fault has not come") }
            await transport.disconnect()
            troubles += await diary.overdue(limits)
            await bench.controller.heal()
            if let error = await failure() { troubles.append("the next attempt fails: \(error.message)") }
            await transport.disconnect()
            troubles += await bench.host.leftOver(credits: 8)
        } catch {
            troubles.append("the first link: \(error)")
        }
        await bench.close()
        if !troubles.isEmpty { troubles += await diary.notices }
        return troubles
    }

    private func failure() async -> MeshError? {
        do {
            try await transport.connect()
            return nil
        } catch {
            return error as? MeshError ?? MeshError(.internalError, "\(error)")
        }
    }

    /// Deadlines of the phases. Discovery's is that of both its phases; pairing is part of the second. What is wound up waits
    /// for its operation, then for its link.
    private var limits: [LinkPhase: Duration] {
        let phase = HCIBench.phaseTimeout
        return [
            .waitingForBluetooth: phase, .connecting: phase, .discoveringServices: phase,
            .discoveringCharacteristics: phase + HCIBench.pairingTimeout, .subscribingToNotifications: phase,
            .disconnecting: HCIBench.endTimeout * 2,
        ]
    }
}

extension HCIController {
    /// What should not be there while nothing is connected.
    func leftOver(credits: Int) -> [String] {
        var found: [String] = []
        if !links.isEmpty { found.append("\(links.count) links are left") }
        if let free = outbound?.credits, free != credits { found.append("\(free) credits of \(credits)") }
        if !turns.assumeIsolated({ $0.isIdle }) || !seekers.isEmpty || !scanEnds.isEmpty || connecting != nil {
            found.append("somebody waits")
        }
        return found
    }
}
