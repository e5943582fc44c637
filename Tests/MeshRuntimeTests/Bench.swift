// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTestSupport
import MeshTransportAPI

@testable import MeshRuntime

/// A reconnection machine on a bench: virtual time, seeded chance, and one device called `roof` to begin with.
struct Bench: ~Copyable {
    var machine: ReconnectionStateMachine
    var now: Duration = .seconds(1_000)
    var generator = SplitMix(state: 7)
    /// What the last input gave.
    var actions: [ReconnectionAction] = []

    init(
        policy: ReconnectionPolicy = ReconnectionPolicy(), adapter: AdapterSettings? = nil,
        intent: LinkIntent = .connect, limit: Int = 50
    ) {
        machine = ReconnectionStateMachine(maximumConcurrentAttempts: limit)
        add("roof", policy: policy, adapter: adapter, intent: intent)
    }

    mutating func add(
        _ name: String, policy: ReconnectionPolicy = ReconnectionPolicy(), adapter: AdapterSettings? = nil,
        intent: LinkIntent = .connect
    ) {
        let settings = DeviceLinkSettings(policy: policy, adapter: adapter)
        actions = machine.addDevice(name, settings, intent: intent, now: now)
    }

    func snapshot(_ name: String = "roof") -> DeviceLinkSnapshot { machine.snapshot(name, now: now)! }
    var roof: DeviceLinkSnapshot { snapshot() }
    var generation: UInt64 { roof.generation }
    /// The devices whose attempts the last input started.
    var started: [String] {
        actions.compactMap { if case .startAttempt(let device, _) = $0 { device } else { nil } }
    }
    var ended: [String] {
        actions.compactMap { if case .endLink(let device, _) = $0 { device } else { nil } }
    }

    mutating func perform(_ command: LinkCommand, _ name: String = "roof") {
        actions = machine.perform(command, name, now: now)
    }
    mutating func established(_ name: String = "roof", generation: UInt64? = nil) {
        actions = machine.linkEstablished(name, generation: generation ?? snapshot(name).generation, now: now)
    }
    mutating func sessionReady(_ name: String = "roof", generation: UInt64? = nil) {
        actions = machine.sessionReady(name, generation: generation ?? snapshot(name).generation, now: now)
    }
    mutating func end(_ code: MeshError.Code?, _ name: String = "roof", generation: UInt64? = nil) {
        let reason = code.map { MeshError($0, "test") }
        actions = machine.linkEnded(
            name, generation: generation ?? snapshot(name).generation, reason: reason, now: now, using: &generator)
    }
    mutating func becomeReady(_ name: String = "roof") {
        established(name)
        sessionReady(name)
    }
    mutating func adapter(_ name: String, isAvailable: Bool) {
        actions = machine.adapterChanged(name, isAvailable: isAvailable, now: now)
    }
    mutating func pass(_ time: Duration) {
        now += time
        actions = machine.deadlineReached(now: now)
    }
    /// Moves to the next deadline; the time it took.
    @discardableResult
    mutating func passToDeadline() -> Duration? {
        guard let deadline = machine.nextDeadline else { return nil }
        let wait = max(.zero, deadline - now)
        pass(wait)
        return wait
    }
}
