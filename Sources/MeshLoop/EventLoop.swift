// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV
internal import Glibc
internal import Synchronization

/// A libuv event loop that Swift actors run on.
///
/// Actors pin themselves to the loop with `unownedExecutor`; an `await` between two of them then stays on its thread. It is
/// no plain call: in a task that prefers the loop as its executor, each call of and return from an isolated function, and
/// each wait for a continuation, may take one more job, and other jobs run first. So nothing is atomic across an `await`: a
/// task that waits for something looks whether it is there already in the closure of `withCheckedContinuation` itself, and
/// for `Task.isCancelled` there too, or waits for a ``LoopResult`` that was made before.
///
/// A loop belongs to the thread that made it: that thread calls ``run()``, and everything but ``enqueue(_:)``,
/// ``perform(_:)`` and ``stop()`` is called on it.
///
/// Jobs from the loop's own thread cost no system call; those from other threads wake the loop once for any number of
/// them. Jobs run before and after each poll, a bounded number at a time, so that I/O is never starved; an idle loop
/// makes no wake-ups.
///
/// The class is Sendable because of one invariant: all stored state but `remote` is touched on the owning thread only.
public final class EventLoop: SerialExecutor, @unchecked Sendable {
    /// One thing to run on the loop's thread.
    private enum Work {
        case job(UnownedJob)
        case call(() -> Void)
        case done
    }

    /// One thing that another thread wants run here.
    private enum RemoteWork: Sendable {
        case job(UnownedJob)
        case call(@Sendable () -> Void)
    }

    /// Work from other threads, and whether the loop has been told of it.
    private struct Remote: Sendable {
        var work: [RemoteWork] = []
        var isSignalled = false
        var isOpen = true
    }

    /// How many jobs run before descriptors are looked at again.
    private static let jobsPerTurn = 4_096

    let uv: UnsafeMutablePointer<uv_loop_t>
    private let ownsLoop: Bool
    private let owner: pthread_t
    private let remote = Mutex(Remote())
    private let wakeUp: UnsafeMutablePointer<uv_async_t>
    private let beforePoll: UnsafeMutablePointer<uv_prepare_t>
    private let afterPoll: UnsafeMutablePointer<uv_check_t>
    private let moreToDo: UnsafeMutablePointer<uv_idle_t>
    private var queue: [Work] = []
    private var head = 0
    private var endOfTurn: [() -> Void] = []
    private var isDraining = false
    private var isTurning = false
    /// False for ``closed()``: what `uv` points to is no loop then.
    private let wasOpened: Bool
    private var isClosed = false
    /// After ``shutDown()``: a thread of libuv's pool is still at work for this loop, such as a look-up of a name that
    /// nobody answers for. `exit` would wait for it (libuv joins its pool); `_exit` does not.
    public private(set) var hasUnfinishedWork = false
    private var taskPreference: LoopTaskExecutor?
    /// Nil for the machine's clock.
    let virtualTime: VirtualTime?
    /// See ``descriptorReserve``. Weak: it is its listeners', and gone before the loop is.
    weak var reserve: DescriptorReserve?
    /// Bytes are read into this one buffer and handed on before the next read.
    let readBuffer: UnsafeMutableRawBufferPointer

    /// A loop of its own, for the calling thread.
    public convenience init(time: LoopTime = .monotonic) {
        let uv = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
        let status = uv_loop_init(uv)
        // With a message in release builds too, and at the start of a program: it has no descriptors to begin with.
        if status != 0 { fatalError("no event loop: \(LoopError(status: status, operation: "uv_loop_init"))") }
        self.init(uv: uv, ownsLoop: true, time)
    }

    /// A loop that has been shut down before anything happened on it, for the calling thread: for what is made on a loop and
    /// only asked something. It takes no descriptor.
    public static func closed() -> EventLoop {
        let loop = EventLoop(uv: .allocate(capacity: 1), ownsLoop: true, .monotonic, isClosed: true)
        loop.wakeUp.deallocate()
        loop.beforePoll.deallocate()
        loop.afterPoll.deallocate()
        loop.moreToDo.deallocate()
        return loop
    }

    /// A loop that somebody else runs: inside a module, the host's. Call on the loop's thread, and ``shutDown()`` when
    /// done. `uvLoop` is a `uv_loop_t *`.
    public convenience init(wrapping uvLoop: UnsafeMutableRawPointer) {
        self.init(uv: uvLoop.assumingMemoryBound(to: uv_loop_t.self), ownsLoop: false, .monotonic)
    }

    private init(
        uv: UnsafeMutablePointer<uv_loop_t>, ownsLoop: Bool, _ time: LoopTime, isClosed: Bool = false
    ) {
        self.uv = uv
        self.ownsLoop = ownsLoop
        virtualTime = time == .virtual ? VirtualTime() : nil
        owner = pthread_self()
        wakeUp = .allocate(capacity: 1)
        beforePoll = .allocate(capacity: 1)
        afterPoll = .allocate(capacity: 1)
        moreToDo = .allocate(capacity: 1)
        readBuffer = .allocate(byteCount: 65_536, alignment: 16)
        wasOpened = !isClosed
        self.isClosed = isClosed
        if isClosed {
            remote.withLock { $0.isOpen = false }
            return
        }
        uv_async_init(uv, wakeUp) { EventLoop.of($0)?.drain() }
        uv_prepare_init(uv, beforePoll)
        uv_check_init(uv, afterPoll)
        uv_idle_init(uv, moreToDo)
        let me = Unmanaged.passUnretained(self).toOpaque()
        wakeUp.pointee.data = me
        beforePoll.pointee.data = me
        afterPoll.pointee.data = me
        moreToDo.pointee.data = me
        uv_prepare_start(beforePoll) { EventLoop.of($0)?.willPoll() }
        uv_check_start(afterPoll) { EventLoop.of($0)?.hasPolled() }
        uv_unref(handle(beforePoll))
        uv_unref(handle(afterPoll))
        uv_unref(handle(moreToDo))
        if !ownsLoop { uv_unref(handle(wakeUp)) }
    }

    deinit {
        precondition(isClosed, "a EventLoop was dropped without shutDown()")
        readBuffer.deallocate()
        // A pool thread that is still at work will tell this loop of its end.
        if ownsLoop, !hasUnfinishedWork { uv.deallocate() }
    }

    /// The `uv_loop_t *`, for C libraries and modules that share this loop.
    public var unsafeUVLoop: UnsafeMutableRawPointer { UnsafeMutableRawPointer(uv) }

    /// Whether the caller is on the loop's thread.
    public var isOnLoop: Bool { pthread_equal(pthread_self(), owner) != 0 }

    /// What ``now`` and all timers go by.
    public var time: LoopTime { virtualTime == nil ? .monotonic : .virtual }

    /// Monotonic time (CLOCK_MONOTONIC, unless it is virtual), as the time since an arbitrary start.
    public var now: Duration { virtualTime?.now ?? .nanoseconds(Int64(clamping: uv_hrtime())) }

    // MARK: Running

    /// Runs the loop until ``stop()``. Only for a loop of its own, on its thread.
    public func run() {
        precondition(isOnLoop && ownsLoop)
        uv_run(uv, UV_RUN_DEFAULT)
        drain()
    }

    /// Makes ``run()`` return after the current turn. From any thread.
    public func stop() {
        perform { uv_stop(self.uv) }
    }

    /// Closes the loop's own handles. What others left open is closed too, and named in the error: a leak.
    ///
    /// A wrapped loop only gives up its own handles; the host's loop goes on and finishes closing them.
    public func shutDown() throws(LoopError) {
        precondition(isOnLoop)
        guard !isClosed else { return }
        isClosed = true
        remote.withLock { $0.isOpen = false }
        takeRemoteWork()
        if ownsLoop {
            // Handles whose owners have just gone, and jobs that end tasks, get their turn first.
            for _ in 0..<64 where uv_run(uv, UV_RUN_NOWAIT) != 0 || head < queue.count { drain() }
        }
        uv_close(handle(wakeUp)) { $0?.deallocate() }
        uv_close(handle(beforePoll)) { $0?.deallocate() }
        uv_close(handle(afterPoll)) { $0?.deallocate() }
        uv_close(handle(moreToDo)) { $0?.deallocate() }
        for handle in ownHandles { handle.pointee.data = nil }
        guard ownsLoop else { return }
        uv_run(uv, UV_RUN_NOWAIT)
        let leaked = openHandles
        closeRemainingHandles()
        let status = uv_loop_close(uv)
        // Busy without a handle: a request has not ended, and only those of the pool outlive their owners.
        hasUnfinishedWork = status == UV_EBUSY.rawValue
        if !leaked.isEmpty || status != 0 && !hasUnfinishedWork {
            throw LoopError(kind: .leak, operation: "shutDown", detail: leaked.joined(separator: ", "))
        }
    }

    /// The kinds of the handles that are open on this loop and not its own, such as `tcp` or `timer`.
    public var openHandles: [String] {
        final class Names {
            var list: [String] = []
            var own: [UnsafeMutablePointer<uv_handle_t>] = []
        }
        guard wasOpened else { return [] }
        let names = Names()
        if !isClosed { names.own = ownHandles }
        uv_walk(
            uv,
            { handle, context in
                guard let handle, let context else { return }
                let names = Unmanaged<Names>.fromOpaque(context).takeUnretainedValue()
                if uv_is_closing(handle) == 0, !names.own.contains(handle) {
                    names.list.append(String(cString: uv_handle_type_name(uv_handle_get_type(handle))))
                }
            }, Unmanaged.passUnretained(names).toOpaque())
        return names.list.sorted()
    }

    private var ownHandles: [UnsafeMutablePointer<uv_handle_t>] {
        [handle(wakeUp), handle(beforePoll), handle(afterPoll), handle(moreToDo)]
    }

    private func closeRemainingHandles() {
        uv_walk(uv, { handle, _ in if let handle, uv_is_closing(handle) == 0 { uv_close(handle, nil) } }, nil)
        uv_run(uv, UV_RUN_NOWAIT)
    }

    // MARK: Work

    /// Runs an actor's job on the loop. Called by the Swift runtime, from any thread.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if isOnLoop { append(.job(job)) } else { post(.job(job)) }
    }

    /// Runs a closure on the loop's thread, after what is queued already. From any thread.
    public func perform(_ work: @escaping @Sendable () -> Void) {
        if isOnLoop { append(.call(work)) } else { post(.call(work)) }
    }

    /// Runs a closure after the current callback, from the loop's thread only.
    public func performLater(_ work: @escaping () -> Void) {
        assert(isOnLoop)
        append(.call(work))
    }

    /// Runs a closure once when all queued jobs have run, before the loop looks at descriptors again: the place to write
    /// what the turn has gathered. From the loop's thread only.
    public func atEndOfTurn(_ work: @escaping () -> Void) {
        assert(isOnLoop)
        endOfTurn.append(work)
        if !isDraining { keepTurning(true) }
    }

    private func append(_ work: Work) {
        queue.append(work)
        // Another loop object on the same uv loop may append after this one's turn and before the poll.
        if !isDraining { keepTurning(true) }
    }

    private func post(_ work: RemoteWork) {
        let isOpen = remote.withLock { remote in
            guard remote.isOpen else { return false }
            remote.work.append(work)
            // Under the lock: a loop that is awake anyway may do the work at once, and if that is to stop, the handle is gone.
            if !remote.isSignalled { uv_async_send(wakeUp) }
            remote.isSignalled = true
            return true
        }
        precondition(isOpen, "work for a EventLoop that has been shut down")
    }

    private func willPoll() {
        drain()
        guard let virtualTime, !isClosed else { return }
        virtualTime.willPoll(self)
        keepTurning(hasWork || virtualTime.needsTurn)
    }

    private func hasPolled() {
        drain()
        guard let virtualTime, !isClosed else { return }
        virtualTime.hasPolled(self)
        keepTurning(hasWork || virtualTime.needsTurn)
    }

    private var hasWork: Bool { !(queue.isEmpty && endOfTurn.isEmpty) }

    private func drain() {
        guard !isDraining else { return }
        isDraining = true
        defer { isDraining = false }
        takeRemoteWork()
        guard hasWork else { return }
        virtualTime?.worked()
        var left = Self.jobsPerTurn
        repeat {
            while head < queue.count, left > 0 {
                let work = queue[head]
                queue[head] = .done
                head += 1
                left -= 1
                switch work {
                case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
                case .call(let call): call()
                case .done: break
                }
            }
            if head == queue.count {
                queue.removeAll(keepingCapacity: queue.capacity <= 16_384)
                head = 0
            } else if head >= Self.jobsPerTurn {
                queue.removeSubrange(..<head)
                head = 0
            }
            let flushes = endOfTurn
            endOfTurn.removeAll(keepingCapacity: true)
            left -= flushes.count
            for flush in flushes { flush() }
        } while left > 0 && hasWork
        keepTurning(hasWork)
    }

    private func takeRemoteWork() {
        let work = remote.withLock { remote -> [RemoteWork] in
            guard remote.isSignalled else { return [] }
            remote.isSignalled = false
            defer { remote.work = [] }
            return remote.work
        }
        for item in work {
            switch item {
            case .job(let job): queue.append(.job(job))
            case .call(let call): queue.append(.call(call))
            }
        }
    }

    /// With work left, the next poll must not block: libuv polls with a zero timeout while an idle handle is active.
    private func keepTurning(_ needed: Bool) {
        guard needed != isTurning, !isClosed else { return }
        isTurning = needed
        if needed {
            uv_idle_start(moreToDo) { _ in }
        } else {
            uv_idle_stop(moreToDo)
        }
    }

    /// The loop as the executor a task prefers: `Task(executorPreference: loop.taskExecutor)`.
    ///
    /// What belongs to no actor, such as the inside of `AsyncStream`, then runs on the loop too. Without it every element
    /// of a stream goes through a thread of the global pool and back. From the loop's thread only.
    public var taskExecutor: LoopTaskExecutor {
        assert(isOnLoop)
        if let taskPreference { return taskPreference }
        let executor = LoopTaskExecutor(self)
        taskPreference = executor
        return executor
    }

    // MARK: SerialExecutor

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    public func checkIsolated() {
        precondition(isOnLoop, "not on the loop's thread")
    }

    public func isIsolatingCurrentContext() -> Bool? {
        isOnLoop
    }
}

extension EventLoop {
    /// The loop whose handle this is.
    fileprivate static func of<Handle>(_ pointer: UnsafeMutablePointer<Handle>?) -> EventLoop? {
        guard let pointer else { return nil }
        let data = handle(pointer).pointee.data
        return data.map { Unmanaged<EventLoop>.fromOpaque($0).takeUnretainedValue() }
    }
}

/// Any libuv handle as its base type; C's layout rule for handles (libuv `UV_HANDLE_FIELDS`) makes this valid.
func handle<Handle>(_ pointer: UnsafeMutablePointer<Handle>) -> UnsafeMutablePointer<uv_handle_t> {
    UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: uv_handle_t.self)
}
