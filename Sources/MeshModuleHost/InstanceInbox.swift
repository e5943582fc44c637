// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import Glibc
internal import MeshTransportAPI
internal import Synchronization

/// What a module told the host, in the order it said it.
enum HostEvent: Sendable {
    case frame(mh_link, Data)
    case framesRefused(mh_link)
    case linkUp(mh_link, maximum: Int, peer: String)
    case linkDown(mh_link, mh_status, detail: String)
    case writable(mh_link)
    case sendDone(cookie: UInt64, mh_status)
    case found(ScanResult)
    case scanFailed(mh_status, detail: String)
    case metric(String, kind: Int32, Double)
    case linkEvent(mh_link, kind: Int32, UInt64)
    case managed(request: UInt64, mh_status, Data)
    case stopped
    /// It has ended without being asked to: what its links end with, and why.
    case failed(mh_status, detail: String)
}

/// Where a module's callbacks go, from any thread: one inbox per instance, drained on the loop.
///
/// Frames are copied here once and bounded per link; everything else is bounded by what the host asked for, or dropped
/// beyond ``InstanceInbox/eventLimit``. Many events cost one wake-up. The object is the `mh_host_ctx`: it is never freed
/// (see ``retainForever()``), so that a module that calls late finds a closed inbox and not freed memory.
final class InstanceInbox: Sendable {
    /// How much one link may have waiting for its consumer.
    struct Limits: Sendable {
        var frames = 1_024
        var bytes = 1 << 20
    }

    /// What one link has waiting.
    private struct Account {
        var frames = 0
        var bytes = 0
        /// The module was told to wait for `rx_ready`.
        var isStalled = false
        /// Frames it offered all the same.
        var refused = 0
    }

    private struct State {
        var events: [HostEvent] = []
        var isSignalled = false
        /// Calls the owner on its loop; nil once the inbox is closed.
        var wake: (@Sendable () -> Void)?
        var accounts: [mh_link: Account] = [:]
        /// Links that have ended and whose adapter may still be reported.
        var ended: Set<mh_link> = []
        /// Requests that have no answer yet.
        var requests: Set<UInt64> = []
        /// The cookie of the `send` that is running now, and its `tx_done` if that has come already.
        var sending: UInt64?
        var sendingStatus: mh_status?
        var lateCalls = 0
        var droppedEvents = 0
    }

    /// Reports that nobody waits for (scan results, figures) are dropped beyond this many.
    static let eventLimit = 16_384

    let limits: Limits
    /// Whether the module can be told to go on; if not, what does not fit is lost at once.
    private let canResume: Bool
    private let state: Mutex<State>
    let log: LogSink

    /// `wake` is called from any thread, under a lock: it may only post.
    init(limits: Limits, canResume: Bool, log: LogSink) {
        self.limits = limits
        self.canResume = canResume
        self.log = log
        state = Mutex(State())
    }

    /// The context pointer. The reference is leaked on purpose, some hundred bytes per instance.
    func retainForever() -> OpaquePointer {
        OpaquePointer(Unmanaged.passRetained(self).toOpaque())
    }

    // MARK: From any thread

    func receive(_ link: mh_link, _ frame: mh_bytes) -> mh_status {
        guard let start = frame.ptr, frame.len > 0, frame.len <= Int(MH_MAX_FRAME) else { return MH_EINVAL }
        let data = Data(bytes: start, count: frame.len)
        let (status, isRude) = state.withLock { state -> (mh_status, isRude: Bool) in
            // One look-up, and the account is changed in place: this is the way of each frame.
            guard state.wake != nil, let index = state.accounts.index(forKey: link) else {
                state.lateCalls += 1
                return (MH_ECLOSED, false)
            }
            var account = state.accounts.values[index]
            let wasStalled = account.isStalled
            let isFull = account.frames >= limits.frames || account.bytes + data.count > limits.bytes
            if wasStalled || isFull {
                if wasStalled || !canResume {
                    account.refused += 1
                    if account.refused == 1 { state.events.append(.framesRefused(link)) }
                }
                account.isStalled = canResume
                state.accounts.values[index] = account
                signal(&state)
                return (MH_AGAIN, wasStalled || !canResume)
            }
            account.frames += 1
            account.bytes += data.count
            state.accounts.values[index] = account
            state.events.append(.frame(link, data))
            signal(&state)
            return (MH_OK, false)
        }
        // A thread that goes on offering takes the lock again before the loop, which waits for it, has woken up: for as long as
        // it likes, for the lock is not fair.
        if isRude { sched_yield() }
        return status
    }

    /// The last word about a link but for its adapter; later calls about it are late.
    func linkDown(_ link: mh_link, _ status: mh_status, detail: String) {
        post(
            late: { state in
                guard state.accounts.removeValue(forKey: link) != nil else { return true }
                state.ended.insert(link)
                return false
            }, .linkDown(link, status, detail: detail))
    }

    /// The adapter of a link, or of one that has ended, came or went.
    func adapterChanged(_ link: mh_link, _ value: UInt64) {
        post(
            late: { $0.accounts[link] == nil && !$0.ended.contains(link) }, isDroppable: true,
            .linkEvent(link, kind: MH_EVENT_ADAPTER, value))
    }

    /// The one answer to a request.
    func managed(_ request: UInt64, _ status: mh_status, _ result: Data) {
        post(late: { $0.requests.remove(request) == nil }, .managed(request: request, status, result))
    }

    /// Something about one link.
    func post(_ event: HostEvent, for link: mh_link, isDroppable: Bool = false) {
        post(late: { $0.accounts[link] == nil }, isDroppable: isDroppable, event)
    }

    /// Something about the instance.
    func post(_ event: HostEvent, isDroppable: Bool = false) {
        post(late: { _ in false }, isDroppable: isDroppable, event)
    }

    func sendDone(_ cookie: UInt64, _ status: mh_status) {
        state.withLock { state in
            guard state.wake != nil else {
                state.lateCalls += 1
                return
            }
            if state.sending == cookie, state.sendingStatus == nil {
                state.sendingStatus = status
                return
            }
            state.events.append(.sendDone(cookie: cookie, status))
            signal(&state)
        }
    }

    private func post(late isLate: (inout State) -> Bool, isDroppable: Bool = false, _ event: HostEvent) {
        state.withLock { state in
            guard state.wake != nil, !isLate(&state) else {
                state.lateCalls += 1
                return
            }
            if isDroppable, state.events.count >= Self.eventLimit {
                state.droppedEvents += 1
                return
            }
            state.events.append(event)
            signal(&state)
        }
    }

    /// Posts under the lock: so the loop cannot be gone between the look at `wake` and its call.
    private func signal(_ state: inout State) {
        guard !state.isSignalled else { return }
        state.isSignalled = true
        state.wake?()
    }

    // MARK: From the loop

    /// From here on calls are taken. `wake` is called from any thread, under a lock: it may only post to the loop.
    func open(wake: @escaping @Sendable () -> Void) {
        state.withLock { $0.wake = wake }
    }

    /// From here on calls are late: ignored and counted.
    func close() {
        state.withLock { state in
            state.wake = nil
            state.events = []
            state.accounts = [:]
            state.ended = []
            state.requests = []
        }
    }

    func openLink(_ link: mh_link) {
        state.withLock { $0.accounts[link] = Account() }
    }

    /// The link has ended. Its adapter may still be reported, until ``forgetLink(_:)``.
    func closeLink(_ link: mh_link) {
        state.withLock { state in
            state.accounts[link] = nil
            state.ended.insert(link)
        }
    }

    func forgetLink(_ link: mh_link) {
        state.withLock { _ = $0.ended.remove(link) }
    }

    func openRequest(_ request: UInt64) {
        state.withLock { _ = $0.requests.insert(request) }
    }

    /// Nobody waits for the answer any more.
    func closeRequest(_ request: UInt64) {
        state.withLock { _ = $0.requests.remove(request) }
    }

    /// What has come since the last call. `spare` is an emptied array whose memory is used for what comes next.
    func take(spare: inout [HostEvent]) -> [HostEvent] {
        state.withLock { state in
            state.isSignalled = false
            let events = state.events
            state.events = spare
            spare = []
            return events
        }
    }

    /// The consumer took this much. True when the module was told to wait and may now go on.
    func release(_ link: mh_link, frames: Int, bytes: Int) -> Bool {
        state.withLock { state in
            guard var account = state.accounts[link] else { return false }
            account.frames -= frames
            account.bytes -= bytes
            let goesOn = account.isStalled && account.frames <= limits.frames / 2 && account.bytes <= limits.bytes / 2
            if goesOn { account.isStalled = false }
            state.accounts[link] = account
            return goesOn
        }
    }

    /// Frames that were offered while the queue was full, since the last call.
    func takeRefused(_ link: mh_link) -> Int {
        state.withLock { state in
            let count = state.accounts[link]?.refused ?? 0
            state.accounts[link]?.refused = 0
            return count
        }
    }

    /// Runs one `send` op and gives its result and, if the module has finished the frame already, how that ended.
    func sending(_ cookie: UInt64, _ body: () -> mh_status) -> (accepted: mh_status, done: mh_status?) {
        state.withLock { state in
            state.sending = cookie
            state.sendingStatus = nil
        }
        let accepted = body()
        return state.withLock { state in
            state.sending = nil
            return (accepted, state.sendingStatus)
        }
    }

    var lateCalls: Int { state.withLock { $0.lateCalls } }
    var droppedEvents: Int { state.withLock { $0.droppedEvents } }
}
