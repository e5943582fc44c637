// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshLoop
public import MeshTransportAPI

/// A link to a device that carries frames in GATT (``GATTSerialProfile``): one write is one frame, one notification is one
/// frame.
///
/// The driver of ``BLELinkStateMachine``: it performs what the machine orders through a ``GATTCentral`` and tells it what
/// happens. It knows nothing of the Bluetooth host behind the central.
///
/// A host that reconnects by itself reads the link's end in ``MeshTransport/receivedData`` and `LinkEvent.down`. A program
/// that does not sets `reconnectsAutomatically` and the handlers here; they run on the loop and return at once.
///
/// From the first `connect` until `disconnect` Bluetooth is observed and a lost link may be made anew: the transport must
/// not be dropped in between. Where `LinkEvent.adapter` has said that Bluetooth is away, it is observed until that is over.
public actor BLETransport: DirectTransport, TransportDiagnosing {
    typealias Waiter = CheckedContinuation<MeshError?, Never>
    typealias Machine = BLELinkStateMachine<Waiter, OutgoingFrame>

    /// A frame on its way to the device.
    struct OutgoingFrame {
        var frame: Data
        /// Where the device can do without an acknowledgement.
        var wantsResponse: Bool
        var sender: CheckedContinuation<MeshError?, Never>
    }

    /// One link, from the central's answer until it has ended.
    final class Link {
        let gatt: any GATTLink
        var peer: GATTPeer
        let inbox: BLEInbox
        /// Set while frames can be sent.
        var description: BLELinkDescription?
        var since = Duration.zero

        init(_ gatt: any GATTLink, _ peer: GATTPeer, _ inbox: BLEInbox) {
            self.gatt = gatt
            self.peer = peer
            self.inbox = inbox
        }
    }

    /// Totals over the transport's life.
    struct Counters {
        var attempts: Int64 = 0
        var connections: Int64 = 0
        var pairings: Int64 = 0
        var framesSent: Int64 = 0
        var bytesSent: Int64 = 0
        var writesFailed: Int64 = 0
    }

    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let central: any GATTCentral
    nonisolated let environment: TransportEnvironment

    var machine: Machine
    /// Links that have not ended, by their generation.
    var links: [UInt64: Link] = [:]
    /// The one that carries frames.
    var up: Link?
    /// Operations that have not ended, by their generation.
    var operations: [UInt64: Task<Void, Never>] = [:]
    var observation: (any GATTObservation)?
    /// Counts observations, so that a late word of an old one is known.
    var observationNumber: UInt64 = 0
    var handlers = BLEHandlers()
    var counters = Counters()
    let received = BLEInbox.Totals()
    var adapterName = "the Bluetooth adapter"
    /// What was last seen of the device.
    var lastPeer: GATTPeer?
    var lastError: MeshError?
    private var lastCall: UInt64 = 0
    private var timer: LoopTimer?
    private var armedDeadline: Duration?
    private var actions: [Machine.Action] = []
    private var isPerforming = false

    /// Opens nothing. Chance decides about the pauses between attempts of its own.
    public init(
        loop: EventLoop, central: any GATTCentral, settings: BLETransportSettings, environment: TransportEnvironment,
        using generator: inout some RandomNumberGenerator
    ) {
        self.loop = loop
        self.central = central
        self.environment = environment
        machine = Machine(settings, seed: generator.next())
    }

    /// The same, with the system's generator.
    public init(
        loop: EventLoop, central: any GATTCentral, settings: BLETransportSettings, environment: TransportEnvironment
    ) {
        var generator = SystemRandomNumberGenerator()
        self.init(loop: loop, central: central, settings: settings, environment: environment, using: &generator)
    }

    // MARK: Connecting

    public func connect() async throws {
        lastCall += 1
        let call = lastCall
        let error = await withTaskCancellationHandler {
            await withCheckedContinuation { (waiter: Waiter) in
                // Here and not before: the machine does not know of a call that is cancelled before this runs.
                if Task.isCancelled {
                    return waiter.resume(
                        returning: MeshError(BLELinkFailure(.requested, phase: machine.phase), of: subject))
                }
                perform(machine.connectRequested(waiter, id: call, now: loop.now))
            }
        } onCancel: {
            loop.perform { self.assumeIsolated { $0.cancelConnect(call) } }
        }
        if let error { throw error }
    }

    private func cancelConnect(_ call: UInt64) {
        perform(machine.connectCancelled(id: call, now: loop.now))
    }

    public func disconnect() async {
        _ = await withCheckedContinuation { waiter in
            perform(machine.disconnectRequested(waiter, now: loop.now))
        }
    }

    /// From now on another device is meant. Whatever is under way with the present one ends first, as at ``disconnect()``;
    /// when this returns, `connect` means the new one, and nothing of the old one can become the link any more.
    public func switchTarget(_ target: BLETarget) async {
        _ = await withCheckedContinuation { waiter in
            perform(machine.disconnectRequested(waiter, newTarget: target, now: loop.now))
        }
    }

    // MARK: Sending

    public func send(_ data: Data) async throws {
        try await send(data, wantsResponse: true)
    }

    public func sendWithoutResponse(_ data: Data) async throws {
        try await send(data, wantsResponse: false)
    }

    private func send(_ frame: Data, wantsResponse: Bool) async throws {
        lastCall += 1
        let call = lastCall
        let error = await withTaskCancellationHandler {
            await withCheckedContinuation { (sender: Waiter) in
                if Task.isCancelled {
                    return sender.resume(returning: MeshError(BLEWriteFailure.cancelled, of: subject))
                }
                let outgoing = OutgoingFrame(frame: frame, wantsResponse: wantsResponse, sender: sender)
                perform(machine.writeRequested(outgoing, id: call, length: frame.count, now: loop.now))
            }
        } onCancel: {
            loop.perform { self.assumeIsolated { $0.cancelSend(call) } }
        }
        if let error { throw error }
    }

    private func cancelSend(_ call: UInt64) {
        perform(machine.writeCancelled(id: call))
    }

    /// Never: a frame has gone when the device has acknowledged it, and that needs waiting.
    public nonisolated func sendAtOnce(_ frame: Data) -> Bool { false }

    // MARK: Facts

    public var isConnected: Bool { machine.isConnected }

    /// Where the link is in its life.
    public var phase: LinkPhase { machine.phase }

    /// Whether the receiving characteristic takes writes that are not acknowledged. False without a link.
    public var supportsWriteWithoutResponse: Bool {
        up?.description?.receive.properties.contains(.writeWithoutResponse) ?? false
    }

    /// A companion radio loses commands that come while another is worked on (companion-protocol §1.2).
    public var supportsPipelinedReads: Bool { false }

    var subject: BLESubject {
        BLESubject(target: machine.settings.target, peer: lastPeer, adapterName: adapterName)
    }

    // MARK: Driving the machine

    /// Performs actions in their order. Something that is called by one of them may call the transport, and thus the machine,
    /// again: what follows from that waits for its turn.
    func perform(_ new: [Machine.Action]) {
        actions += new
        if isPerforming { return }
        isPerforming = true
        var next = 0
        while next < actions.count {
            let action = actions[next]
            next += 1
            run(action)
        }
        actions.removeAll(keepingCapacity: true)
        isPerforming = false
        armTimer()
    }

    private func armTimer() {
        guard let deadline = machine.nextDeadline else {
            armedDeadline = nil
            // An idle transport keeps no handle of the loop.
            if machine.phase == .idle { timer = nil } else { timer?.cancel() }
            return
        }
        if deadline == armedDeadline { return }
        armedDeadline = deadline
        let timer = timer ?? LoopTimer(loop)
        self.timer = timer
        timer.schedule(after: deadline - loop.now) {
            self.armedDeadline = nil
            self.perform(self.machine.deadlineReached(now: self.loop.now))
        }
    }

    nonisolated func report(_ event: LinkEvent) {
        environment.linkEvents(event)
    }
}
