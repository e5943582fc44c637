// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTestSupport
import MeshTransportAPI

@testable import MeshRuntime

/// A world of devices around a reconnection machine, in virtual time: it performs the machine's orders with random delays
/// and outcomes, throws random commands and faults at it, and checks after every input what must always hold.
struct World: ~Copyable {
    /// What the world lets happen to an attempt.
    private enum Fact {
        case established
        case sessionReady
        case ended(MeshError.Code?)
    }

    private struct Happening {
        var time: Duration
        var device: String
        var generation: UInt64
        var fact: Fact
    }

    /// The driver's side of a device.
    private struct Device {
        var adapter: AdapterSettings?
        var intent: LinkIntent
        var isReachable: Bool
        /// The attempt or link that has been started and has not ended.
        var live: UInt64?
        /// The adapter it went through when it started.
        var liveAdapter: AdapterSettings?
        var isReady = false
        var isTold = false
        var isBeingRemoved = false
    }

    private static let adapters: [AdapterSettings?] = [
        nil, .network, AdapterSettings(name: "hci0"), AdapterSettings(name: "hci1", slots: 2),
    ]
    private static let transient: [MeshError.Code] = [
        .connectionRefused, .connectionTimeout, .adapterUnavailable, .linkClosed, .linkClosedByPeer, .contended,
    ]
    private static let names = ["a", "b", "c", "d", "e", "f"]

    private var machine: ReconnectionStateMachine
    private var generator: SplitMix
    private var now: Duration = .zero
    private var devices: [String: Device] = [:]
    private var happenings: [Happening] = []
    private var away: Set<String> = []
    private let limit: Int
    private(set) var problems: [String] = []
    private(set) var attempts = 0

    init(seed: UInt64) {
        generator = SplitMix(state: seed)
        limit = Int.random(in: 1...4, using: &generator)
        machine = ReconnectionStateMachine(maximumConcurrentAttempts: limit)
        for name in Self.names.prefix(Int.random(in: 1...5, using: &generator)) { add(name) }
    }

    /// Chaos for so many steps, then a world that works; problems are collected on the way.
    mutating func run(steps: Int) {
        for _ in 0..<steps where problems.isEmpty {
            if Int.random(in: 0..<3, using: &generator) == 0 { disturb() } else { advance() }
        }
        heal()
        let limit = now + .seconds(4 * 3_600)
        while problems.isEmpty, now < limit, !isWell {
            advance()
            askWherePeopleAreAwaited()
        }
        if problems.isEmpty, !isWell {
            let stuck = devices.keys.sorted().compactMap { machine.snapshot($0, now: now) }.filter {
                $0.phase != .ready
            }
            problems.append("not ready in a world that works: \(stuck)")
        }
    }

    private var isWell: Bool { devices.values.allSatisfy { $0.isReady && !$0.isTold } }

    // MARK: Events

    /// Lets the next thing happen, be it a fact of the world or the machine's deadline.
    private mutating func advance() {
        let next = happenings.indices.min { happenings[$0].time < happenings[$1].time }
        let deadline = machine.nextDeadline
        if let next, deadline.map({ happenings[next].time <= $0 }) ?? true {
            let happening = happenings.remove(at: next)
            now = max(now, happening.time)
            deliver(happening)
        } else if let deadline {
            now = max(now, deadline)
            perform(machine.deadlineReached(now: now))
        } else {
            now += .seconds(1)
        }
        check()
    }

    private mutating func deliver(_ happening: Happening) {
        let name = happening.device
        let generation = happening.generation
        switch happening.fact {
        case .established: perform(machine.linkEstablished(name, generation: generation, now: now))
        case .sessionReady:
            devices[name]?.isReady = true
            perform(machine.sessionReady(name, generation: generation, now: now))
        case .ended(let code):
            happenings.removeAll { $0.generation == generation }
            devices[name]?.live = nil
            devices[name]?.isReady = false
            devices[name]?.isTold = false
            let reason = code.map { MeshError($0, "world") }
            perform(
                machine.linkEnded(name, generation: generation, reason: reason, now: now, using: &generator))
        }
    }

    private mutating func disturb() {
        now += .milliseconds(Int.random(in: 0...3_000, using: &generator))
        let name = devices.keys.sorted().randomElement(using: &generator) ?? "a"
        switch Int.random(in: 0..<14, using: &generator) {
        case 0...3: command(name)
        case 4: devices[name]?.isReachable.toggle()
        case 5: adapterChanged(["hci0", "hci1", "network"].randomElement(using: &generator)!)
        case 6: perform(machine.deadlineReached(now: now))
        case 7:
            // Somebody else's facts: too old, or of the future.
            let generation = UInt64.random(in: 0...machine.snapshot(name, now: now, or: 5), using: &generator)
            guard devices[name]?.live != generation else { return }
            perform(machine.linkEstablished(name, generation: generation, now: now))
            perform(machine.sessionReady(name, generation: generation, now: now))
            perform(machine.linkEnded(name, generation: generation, reason: nil, now: now, using: &generator))
        case 8:
            if let live = devices[name]?.live, devices[name]?.isReady == true {
                deliver(Happening(time: now, device: name, generation: live, fact: .ended(.linkClosedByPeer)))
            }
        case 9:
            if devices[name]?.live != nil {
                devices[name]?.isBeingRemoved = true
                devices[name]?.intent = .disconnect
            }
            if devices.count > 1 || devices[name]?.isBeingRemoved == true {
                perform(machine.removeDevice(name, now: now))
            }
        case 10:
            if let free = Self.names.first(where: { devices[$0] == nil }) { add(free) }
        case 11:
            if var device = devices[name] {
                device.adapter = Self.adapters.randomElement(using: &generator)!
                devices[name] = device
                let settings = DeviceLinkSettings(policy: policy(), adapter: device.adapter)
                perform(machine.settingsChanged(name, settings, needsNewLink: true, now: now))
            }
        default: advance()
        }
        check()
    }

    private mutating func command(_ name: String) {
        let command: LinkCommand =
            switch Int.random(in: 0..<6, using: &generator) {
            case 0: .disconnect
            case 1: .release(for: .seconds(Int.random(in: 1...100, using: &generator)))
            case 2: .release(for: nil)
            case 3: .reconnect
            default: .connect
            }
        if devices[name]?.isBeingRemoved == false {
            devices[name]?.intent =
                switch command {
                case .connect, .reconnect: .connect
                case .disconnect: .disconnect
                case .release(let time): .release(until: time.map { now + $0 })
                }
        }
        perform(machine.perform(command, name, now: now))
    }

    private mutating func adapterChanged(_ name: String) {
        let isAvailable = Bool.random(using: &generator)
        if isAvailable { away.remove(name) } else { away.insert(name) }
        perform(machine.adapterChanged(name, isAvailable: isAvailable, now: now))
    }

    private mutating func add(_ name: String) {
        let adapter = Self.adapters.randomElement(using: &generator)!
        let intent: LinkIntent = Int.random(in: 0..<4, using: &generator) == 0 ? .disconnect : .connect
        devices[name] = Device(adapter: adapter, intent: intent, isReachable: Bool.random(using: &generator))
        let settings = DeviceLinkSettings(policy: policy(), adapter: adapter)
        perform(machine.addDevice(name, settings, intent: intent, now: now))
    }

    private mutating func policy() -> ReconnectionPolicy {
        var policy = ReconnectionPolicy()
        if Int.random(in: 0..<4, using: &generator) == 0 {
            policy.maximumRetries = Int.random(in: 0...3, using: &generator)
        }
        return policy
    }

    /// Everything is reachable, and a person asks for every device once.
    private mutating func heal() {
        for adapter in away.sorted() { perform(machine.adapterChanged(adapter, isAvailable: true, now: now)) }
        away = []
        while devices.values.contains(where: \.isBeingRemoved), problems.isEmpty { advance() }
        for name in devices.keys.sorted() {
            devices[name]?.isReachable = true
            devices[name]?.intent = .connect
            perform(machine.perform(.connect, name, now: now))
        }
        check()
    }

    /// Attempts that were under way when the world healed may still fail for good.
    private mutating func askWherePeopleAreAwaited() {
        for name in devices.keys.sorted() {
            switch machine.snapshot(name, now: now)?.waiting {
            case .blocked, .exhausted: perform(machine.perform(.connect, name, now: now))
            default: break
            }
        }
    }

    // MARK: Orders

    private mutating func perform(_ actions: [ReconnectionAction]) {
        for action in actions {
            switch action {
            case .startAttempt(let device, let generation): start(device, generation)
            case .endLink(let device, let generation): end(device, generation)
            case .forget(let device):
                if devices[device]?.live != nil { problems.append("\(device) was forgotten with an attempt in flight") }
                devices[device] = nil
            case .report, .reportAdapter: break
            }
        }
    }

    private mutating func start(_ name: String, _ generation: UInt64) {
        attempts += 1
        guard var device = devices[name] else {
            problems.append("attempt for the unknown device \(name)")
            return
        }
        if device.live != nil { problems.append("two attempts in flight for \(name)") }
        switch device.intent {
        case .connect: break
        case .release(let until?) where until <= now: device.intent = .connect
        case .disconnect, .release: problems.append("attempt without intent for \(name)")
        }
        device.live = generation
        device.liveAdapter = device.adapter
        devices[name] = device
        let connect = delay(20_000)
        if device.isReachable {
            schedule(name, generation, .established, connect)
            if Int.random(in: 0..<8, using: &generator) > 0 {
                schedule(name, generation, .sessionReady, connect + delay(9_000))
            }
        } else if Int.random(in: 0..<6, using: &generator) > 0 {
            let isLasting = Int.random(in: 0..<20, using: &generator) == 0
            schedule(
                name, generation,
                .ended(isLasting ? .authenticationFailed : Self.transient.randomElement(using: &generator)), connect)
        }
        // Else it hangs until it is cancelled.
    }

    private mutating func end(_ name: String, _ generation: UInt64) {
        guard devices[name]?.live == generation else {
            problems.append("end of \(name) \(generation), which is not in flight")
            return
        }
        guard devices[name]?.isTold == false else { return }
        devices[name]?.isTold = true
        let end = now + delay(12_000)
        // What would have come later does not come any more; what was under way may.
        happenings.removeAll { $0.generation == generation && $0.time >= end }
        schedule(name, generation, .ended(.cancelled), end - now)
    }

    private mutating func delay(_ milliseconds: Int) -> Duration {
        .milliseconds(Int.random(in: 0...milliseconds, using: &generator))
    }

    private mutating func schedule(_ device: String, _ generation: UInt64, _ fact: Fact, _ delay: Duration) {
        happenings.append(Happening(time: now + delay, device: device, generation: generation, fact: fact))
    }

    // MARK: Invariants

    private mutating func check() {
        var total = 0
        var perAdapter: [String: Int] = [:]
        for (name, device) in devices {
            guard let snapshot = machine.snapshot(name, now: now) else {
                problems.append("\(name) is lost")
                continue
            }
            let isWaiting = snapshot.phase == .waiting
            if isWaiting != (device.live == nil) {
                problems.append("\(name): \(snapshot.phase), live \(device.live ?? 0)")
            }
            if device.live != nil, !device.isReady {
                total += 1
                if let adapter = device.liveAdapter { perAdapter[adapter.name, default: 0] += 1 }
            }
            switch snapshot.phase {
            case .connecting, .handshaking, .ready:
                if snapshot.waiting != nil { problems.append("\(name) waits while \(snapshot.phase)") }
                if snapshot.intent != .connect { problems.append("\(name) is \(snapshot.phase) without intent") }
                if snapshot.phase != .ready, snapshot.remaining == nil { problems.append("\(name) has no deadline") }
            case .waiting, .ending:
                checkWait(name, device, snapshot)
            }
        }
        if total > limit { problems.append("\(total) attempts of \(limit)") }
        for (name, count) in perAdapter {
            let slots = Self.adapters.compactMap { $0 }.first { $0.name == name }!.slots
            if count > slots { problems.append("\(count) attempts through \(name)") }
        }
    }

    private mutating func checkWait(_ name: String, _ device: Device, _ snapshot: DeviceLinkSnapshot) {
        guard let reason = snapshot.waiting else {
            problems.append("\(name) does nothing and does not say why")
            return
        }
        switch reason {
        case .disconnected, .released, .blocked, .exhausted, .ending: break
        case .slot:
            if machine.attemptsUnderWay == 0 { problems.append("\(name) waits for a slot and all are free") }
        case .adapter:
            if snapshot.remaining == nil, !away.contains(device.adapter?.name ?? "") {
                problems.append("\(name) waits for an adapter that is not away")
            }
        case .backoff, .contended, .breakerOpen:
            if snapshot.remaining == nil { problems.append("\(name) waits for \(reason.slug) without a deadline") }
        }
        if let remaining = snapshot.remaining, remaining > .seconds(300) {
            problems.append("\(name) waits \(remaining)")
        }
        if case .connect = snapshot.intent {
        } else {
            switch reason {
            case .disconnected, .released, .ending: break
            default: problems.append("\(name) waits for \(reason.slug) without intent")
            }
        }
    }
}

extension ReconnectionStateMachine {
    fileprivate func snapshot(_ name: String, now: Duration, or fallback: UInt64) -> UInt64 {
        snapshot(name, now: now).map { $0.generation + 3 } ?? fallback
    }
}
