// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// Decides for all devices when links are made and ended: admission control over one ``DeviceLinkStateMachine`` each.
///
/// ```
///   commands, facts, now                       ┌──────────────────────────┐
///  ────────────────────────▶ the device's own ─┤ asks for a slot          ├─▶ queue of its adapter, first come first served
///                            machine           │ holds a slot / gave it up│
///                                              └──────────────────────────┘
///     admission: while fewer than `maximumConcurrentAttempts` are under way, the device that has waited longest among
///     those whose adapter has a free slot ─▶ startAttempt
/// ```
///
/// A slot is taken at admission and given up when the attempt has ended or the device is ready. A device whose adapter is
/// full does not hold up those of others.
///
/// Pure: time comes in as `now` (monotonic), chance as a generator; nothing here waits or acts.
/// Reference: architecture §7; `reconnection.md` §1.3, §4.2–4.3.
///
/// Cost per input: O(log n) in the number of devices for deadlines and queues, plus one look at each adapter with waiting
/// devices per admission.
public struct ReconnectionStateMachine: ~Copyable {
    /// One device. A class, so that an input changes it in place; only this parent refers to it.
    private final class Device {
        let name: String
        var link: DeviceLinkStateMachine
        /// The adapter whose slot it holds.
        var heldGate: String?
        /// The adapter in whose queue it stands.
        var queuedGate: String?
        var reported: Reported

        init(name: String, link: DeviceLinkStateMachine) {
            self.name = name
            reported = Reported(intent: link.episode.intent)
            self.link = link
        }

        /// Devices with a port of their own share a gate without a limit.
        var gate: String { link.episode.settings.adapter?.name ?? "" }
        var slots: Int { link.episode.settings.adapter?.slots ?? .max }
    }

    /// What was last told about a device.
    private struct Reported {
        var intent: LinkIntent
        var phase: DeviceLinkSnapshot.Phase?
        var generation: UInt64 = 0
        /// How far the present attempt or link has come.
        var reached: DeviceLinkSnapshot.Phase = .connecting
        var waiting: WaitReason?
        var deadline: Duration?
    }

    /// One adapter as admission sees it.
    private struct Gate {
        var attempts = 0
        var queue = PriorityIndex<String, UInt64>()
    }

    /// At most so many attempts are under way at a time.
    public let maximumConcurrentAttempts: Int
    /// How many are.
    public private(set) var attemptsUnderWay = 0
    private var devices: [String: Device] = [:]
    private var deadlines = PriorityIndex<String, Duration>()
    private var gates: [String: Gate] = [:]
    private var adaptersAway: Set<String> = []
    private var lastGeneration: UInt64 = 0
    private var lastTicket: UInt64 = 0
    private var actions: [ReconnectionAction] = []
    /// Devices the present input touched, in order.
    private var touched: [Device] = []

    public init(maximumConcurrentAttempts: Int = 50) {
        self.maximumConcurrentAttempts = max(1, maximumConcurrentAttempts)
    }

    /// The time by which ``deadlineReached(now:)`` wants to be called; nil if only events can change anything.
    public var nextDeadline: Duration? { deadlines.first?.priority }

    /// The names of all devices, those that are being removed included.
    public var deviceNames: [String] { devices.keys.sorted() }

    /// What is known of one device.
    public func snapshot(_ device: String, now: Duration) -> DeviceLinkSnapshot? {
        devices[device]?.link.snapshot(device: device, now: now)
    }

    // MARK: Devices

    /// A device is configured. Its name must be free; one that is being removed is not.
    public mutating func addDevice(
        _ name: String, _ settings: DeviceLinkSettings, intent: LinkIntent, now: Duration
    ) -> [ReconnectionAction] {
        guard devices[name] == nil else {
            assertionFailure("device \(name) exists")
            return []
        }
        let link = DeviceLinkStateMachine(
            intent: intent, settings: settings, adapterIsAway: isAway(settings.adapter), now: now)
        let device = Device(name: name, link: link)
        devices[name] = device
        touched.append(device)
        return settle(now)
    }

    /// A device is configured no longer. It ends with ``ReconnectionAction/forget(device:)``.
    public mutating func removeDevice(_ name: String, now: Duration) -> [ReconnectionAction] {
        input(name, now) { $0.remove(now: now) }
    }

    /// A device's configuration changed. With `needsNewLink` a link under way is ended and made anew.
    public mutating func settingsChanged(
        _ name: String, _ settings: DeviceLinkSettings, needsNewLink: Bool, now: Duration
    ) -> [ReconnectionAction] {
        let isAway = isAway(settings.adapter)
        return input(name, now) {
            $0.settingsChanged(settings, adapterIsAway: isAway, needsNewLink: needsNewLink, now: now)
        }
    }

    // MARK: Commands

    /// A person asks for something.
    public mutating func perform(_ command: LinkCommand, _ name: String, now: Duration) -> [ReconnectionAction] {
        input(name, now) {
            switch command {
            case .connect: $0.connect(now: now)
            case .disconnect: $0.disconnect(now: now)
            case .release(let time): $0.release(until: time.map { now + $0 }, now: now)
            case .reconnect: $0.reconnect(now: now)
            }
        }
    }

    // MARK: Facts

    /// The transport's `connect` returned.
    public mutating func linkEstablished(
        _ name: String, generation: UInt64, now: Duration
    ) -> [ReconnectionAction] {
        input(name, now) { $0.linkEstablished(generation: generation, now: now) }
    }

    /// The device answered the handshake.
    public mutating func sessionReady(_ name: String, generation: UInt64, now: Duration) -> [ReconnectionAction] {
        input(name, now) { $0.sessionReady(generation: generation, now: now) }
    }

    /// Nothing of that attempt or link is left. What it was until then decides whether this is a failed attempt, a lost link
    /// or the end somebody asked for.
    public mutating func linkEnded(
        _ name: String, generation: UInt64, reason: MeshError?, now: Duration,
        using generator: inout some RandomNumberGenerator
    ) -> [ReconnectionAction] {
        guard let device = devices[name] else { return [] }
        let action = device.link.linkEnded(generation: generation, reason: reason, now: now, using: &generator)
        take(action, device)
        return settle(now)
    }

    /// An adapter became usable or unusable.
    public mutating func adapterChanged(
        _ adapter: String, isAvailable: Bool, now: Duration
    ) -> [ReconnectionAction] {
        let isChange =
            isAvailable ? adaptersAway.remove(adapter) != nil : adaptersAway.insert(adapter).inserted
        if isChange { actions.append(.reportAdapter(adapter, isAvailable: isAvailable)) }
        for name in devices.keys.sorted() {
            guard let device = devices[name], device.link.episode.settings.adapter?.name == adapter else { continue }
            take(device.link.adapterChanged(isAvailable: isAvailable, now: now), device)
        }
        return settle(now)
    }

    /// The port of a device without an adapter became usable or unusable; else the same as for its adapter.
    public mutating func adapterChanged(
        ofDevice name: String, isAvailable: Bool, now: Duration
    ) -> [ReconnectionAction] {
        guard let device = devices[name] else { return [] }
        if let adapter = device.link.episode.settings.adapter {
            return adapterChanged(adapter.name, isAvailable: isAvailable, now: now)
        }
        take(device.link.adapterChanged(isAvailable: isAvailable, now: now), device)
        return settle(now)
    }

    /// Time has passed. Early and repeated calls change nothing.
    public mutating func deadlineReached(now: Duration) -> [ReconnectionAction] {
        var due: [Device] = []
        while let (name, deadline) = deadlines.first, deadline <= now {
            // Taken out, so that each gets one turn; `settle` puts the next deadline in.
            deadlines[name] = nil
            if let device = devices[name] { due.append(device) }
        }
        for device in due { take(device.link.deadlineReached(now: now), device) }
        return settle(now)
    }

    // MARK: Settling

    private mutating func input(
        _ name: String, _ now: Duration, _ body: (inout DeviceLinkStateMachine) -> DeviceLinkStateMachine.Action
    ) -> [ReconnectionAction] {
        guard let device = devices[name] else { return [] }
        take(body(&device.link), device)
        return settle(now)
    }

    private mutating func take(_ action: DeviceLinkStateMachine.Action, _ device: Device) {
        touched.append(device)
        switch action {
        case .none: break
        case .connect(let generation): actions.append(.startAttempt(device: device.name, generation: generation))
        case .end(let generation): actions.append(.endLink(device: device.name, generation: generation))
        case .reportUnended(let generation):
            actions.append(.report(device: device.name, .unended(generation: generation)))
        }
    }

    /// Brings slots, queues and deadlines in line with the machines that just moved, admits who can be, and collects what
    /// is to be told. Slots follow from states, so no path can forget to give one back.
    private mutating func settle(_ now: Duration) -> [ReconnectionAction] {
        for device in touched { updateGate(device) }
        while let device = nextToAdmit() {
            lastGeneration += 1
            take(device.link.admitted(generation: lastGeneration, now: now), device)
            updateGate(device)
        }
        var reports: [ReconnectionAction] = []
        for device in touched {
            report(device, now, &reports)
            deadlines[device.name] = device.link.nextDeadline
            if device.link.isRemoved, devices.removeValue(forKey: device.name) != nil {
                reports.append(.forget(device: device.name))
                forgetAdapter(device.link.episode.settings.adapter)
            }
        }
        defer {
            touched.removeAll(keepingCapacity: true)
            actions.removeAll(keepingCapacity: true)
        }
        return reports + actions
    }

    /// The last device of an adapter takes along what it has said of it: nobody is left to say that it is back.
    private mutating func forgetAdapter(_ adapter: AdapterSettings?) {
        guard let adapter, adapter != .network else { return }
        if !devices.values.contains(where: { $0.link.episode.settings.adapter?.name == adapter.name }) {
            adaptersAway.remove(adapter.name)
        }
    }

    private mutating func updateGate(_ device: Device) {
        if let gate = device.heldGate, !device.link.holdsSlot {
            device.heldGate = nil
            attemptsUnderWay -= 1
            gates[gate]?.attempts -= 1
        } else if device.heldGate == nil, device.link.holdsSlot {
            device.heldGate = device.gate
            attemptsUnderWay += 1
            gates[device.gate, default: Gate()].attempts += 1
        }
        let wantedGate = device.link.wantsSlot ? device.gate : nil
        guard wantedGate != device.queuedGate else { return }
        if let gate = device.queuedGate { gates[gate]?.queue[device.name] = nil }
        if let gate = wantedGate {
            lastTicket += 1
            gates[gate, default: Gate()].queue[device.name] = lastTicket
        }
        device.queuedGate = wantedGate
    }

    /// The device that has waited longest among those at the head of a queue whose adapter has a free slot.
    private func nextToAdmit() -> Device? {
        guard attemptsUnderWay < maximumConcurrentAttempts else { return nil }
        var best: (ticket: UInt64, device: Device)?
        for gate in gates.values {
            guard let (name, ticket) = gate.queue.first, let device = devices[name],
                gate.attempts < max(1, device.slots),
                ticket < best?.ticket ?? .max
            else { continue }
            best = (ticket, device)
        }
        return best?.device
    }

    private func isAway(_ adapter: AdapterSettings?) -> Bool {
        adapter.map { adaptersAway.contains($0.name) } ?? false
    }

    /// What changed since the device was last reported.
    private func report(_ device: Device, _ now: Duration, _ reports: inout [ReconnectionAction]) {
        func tell(_ report: LinkReport) { reports.append(.report(device: device.name, report)) }
        let before = device.reported
        let phase = device.link.phase
        let generation = device.link.generation
        var after = before
        after.intent = device.link.episode.intent
        after.phase = phase
        after.generation = generation
        after.waiting = device.link.waitReason
        after.deadline = device.link.nextDeadline
        if after.intent != before.intent { tell(.intentChanged(after.intent)) }
        let wasUnderWay = before.phase != nil && before.phase != .waiting
        if wasUnderWay, phase == .waiting || generation != before.generation {
            tell(.down(reason: device.link.episode.lastEnd, phase: before.reached, generation: before.generation))
        }
        let isChanged = phase != before.phase || generation != before.generation
        switch phase {
        case .connecting where isChanged:
            after.reached = .connecting
            tell(.connecting(attempt: device.link.episode.attempts, generation: generation))
        case .handshaking where isChanged:
            after.reached = .handshaking
            tell(.up(generation: generation))
        case .ready where isChanged:
            after.reached = .ready
            tell(.ready(generation: generation))
        case .waiting where !device.link.isRemoved:
            guard let reason = after.waiting else { break }
            if isChanged || reason != before.waiting || after.deadline != before.deadline {
                tell(.waiting(reason, remaining: after.deadline.map { max(.zero, $0 - now) }))
            }
        case .connecting, .handshaking, .ready, .waiting, .ending: break
        }
        device.reported = after
    }
}
