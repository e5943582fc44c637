// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// The frames of one connection on their way from a transport to its consumer: what a transport's
/// ``MeshTransport/receivedData`` and ``DirectTransport`` are made of.
///
/// It has no limit of its own and drops nothing: the transport looks at ``count`` and ``byteCount`` and stops reading the
/// device, or `onTaken` gives credits back. There is one consumer at a time.
///
/// Confined to the transport's executor; it is Sendable so that a consumer's stream can hold it.
public final class FrameQueue: @unchecked Sendable {
    private var ring: [Data?] = Array(repeating: nil, count: 16)
    private var head = 0
    /// Frames that wait.
    public private(set) var count = 0
    /// Their bytes.
    public private(set) var byteCount = 0
    /// Whether ``finish(discarding:)`` was called.
    public private(set) var isFinished = false
    private var isDiscarding = false
    private var waiter: (id: UInt64, continuation: CheckedContinuation<Data?, Never>)?
    private var lastWaiter: UInt64 = 0
    private var cancelled: UInt64 = 0
    private var handler: ((Data) -> Bool)?
    private let onTaken: ((Data) -> Void)?

    /// `onTaken` is told of each frame the consumer has got.
    public init(onTaken: ((Data) -> Void)? = nil) {
        self.onTaken = onTaken
    }

    // MARK: The transport's side

    /// Hands a frame to the consumer if it waits for one, else keeps it.
    public func put(_ frame: Data) {
        if isFinished || isDiscarding { return }
        if let handler {
            if count == 0, handler(frame) {
                onTaken?(frame)
                return
            }
        } else if let waiter {
            self.waiter = nil
            onTaken?(frame)
            waiter.continuation.resume(returning: frame)
            return
        }
        if count == ring.count { grow() }
        ring[(head + count) & (ring.count - 1)] = frame
        count += 1
        byteCount += frame.count
    }

    /// Nothing that is kept or comes reaches the consumer any more, which waits for ``finish(discarding:)``.
    public func discard() {
        isDiscarding = true
        empty()
    }

    private func empty() {
        ring = [nil]
        head = 0
        count = 0
        byteCount = 0
    }

    /// The consumer gets what is kept, then the end. With `discarding` it gets the end at once.
    public func finish(discarding: Bool) {
        isFinished = true
        handler = nil
        if discarding { empty() }
        if let waiter {
            self.waiter = nil
            waiter.continuation.resume(returning: take())
        }
    }

    // MARK: The consumer's side

    /// From now on frames are handed to `handler` as they are put, those kept already first. What it does not take
    /// (`false`) is kept, and nothing more is handed over until ``resumeDelivery()``.
    public func deliver(to handler: @escaping (Data) -> Bool) {
        guard !isFinished else { return }
        self.handler = handler
        resumeDelivery()
    }

    /// Goes on handing over.
    public func resumeDelivery() {
        while let handler, count > 0, let frame = ring[head] {
            guard handler(frame) else { return }
            // The handler may have ended the link, and with it this queue's content.
            if !isFinished { _ = take() }
        }
    }

    /// The next frame for a stream, waiting for it on the actor whose queue this is; nil at the end and when the task is
    /// cancelled. While frames are handed over directly, a stream gets what is left when they end.
    ///
    /// `perform` runs a closure on the queue's executor later, from any thread: the loop's `perform`.
    public func next(
        isolation: isolated any Actor, perform: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) async -> Data? {
        if handler == nil, let frame = take() { return frame }
        if isFinished { return nil }
        lastWaiter += 1
        let id = lastWaiter
        return await withTaskCancellationHandler {
            // A closure runs on the actor only if it captures it.
            _ = isolation
            return await withCheckedContinuation { wait(id, $0) }
        } onCancel: {
            perform { self.cancelWaiter(id) }
        }
    }

    /// A consumer that waited already gets the end.
    private func wait(_ id: UInt64, _ continuation: CheckedContinuation<Data?, Never>) {
        waiter?.continuation.resume(returning: nil)
        waiter = nil
        if handler == nil, let frame = take() {
            continuation.resume(returning: frame)
        } else if isFinished || cancelled >= id {
            continuation.resume(returning: nil)
        } else {
            waiter = (id, continuation)
        }
    }

    private func cancelWaiter(_ id: UInt64) {
        cancelled = max(cancelled, id)
        guard let waiter, waiter.id == id else { return }
        self.waiter = nil
        waiter.continuation.resume(returning: nil)
    }

    /// The oldest frame. A full turn of the ring costs no shifting.
    private func take() -> Data? {
        guard count > 0, let frame = ring[head] else { return nil }
        ring[head] = nil
        head = (head + 1) & (ring.count - 1)
        count -= 1
        byteCount -= frame.count
        onTaken?(frame)
        return frame
    }

    private func grow() {
        var larger = [Data?](repeating: nil, count: ring.count * 2)
        for index in 0..<count { larger[index] = ring[(head + index) & (ring.count - 1)] }
        ring = larger
        head = 0
    }
}
