// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV

extension EventLoop {
    /// Runs blocking work (file writes with fsync, say) on libuv's thread pool and comes back with its result.
    ///
    /// The work is not interrupted by cancellation: it ends, and its result is returned.
    public func blocking<Value: Sendable, Failure: Error>(
        isolation: isolated (any Actor)? = #isolation, _ work: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result = await withCheckedContinuation(isolation: isolation) {
            (continuation: CheckedContinuation<Result<Value, Failure>, Never>) in
            perform {
                let request = BlockingRequest(
                    work: {
                        do throws(Failure) {
                            let value = try work()
                            return { continuation.resume(returning: .success(value)) }
                        } catch {
                            return { continuation.resume(returning: .failure(error)) }
                        }
                    })
                request.start(on: self)
            }
        }
        return try result.get()
    }
}

/// One `uv_work_t`. Lives from `start` to its completion callback. Sendable: the pool thread writes `finish` before
/// libuv's queue hands the request back to the loop thread, which reads it.
private final class BlockingRequest: @unchecked Sendable {
    private let uv = UnsafeMutablePointer<uv_work_t>.allocate(capacity: 1)
    private let work: @Sendable () -> (@Sendable () -> Void)
    private var finish: (@Sendable () -> Void)?
    private var time: VirtualTime?

    init(work: @escaping @Sendable () -> (@Sendable () -> Void)) {
        self.work = work
    }

    deinit {
        uv.deallocate()
    }

    func start(on loop: EventLoop) {
        time = loop.virtualTime
        time?.outsideWork += 1
        uv.pointee.data = Unmanaged.passRetained(self).toOpaque()
        let status = uv_queue_work(
            loop.uv, uv, { BlockingRequest.run($0) }, { request, _ in BlockingRequest.end(request) })
        precondition(status == 0, "uv_queue_work: \(status)")
    }

    private static func run(_ request: UnsafeMutablePointer<uv_work_t>?) {
        guard let data = request?.pointee.data else { return }
        let me = Unmanaged<BlockingRequest>.fromOpaque(data).takeUnretainedValue()
        me.finish = me.work()
    }

    private static func end(_ request: UnsafeMutablePointer<uv_work_t>?) {
        guard let data = request?.pointee.data else { return }
        let me = Unmanaged<BlockingRequest>.fromOpaque(data).takeRetainedValue()
        me.time?.outsideWork -= 1
        me.finish?()
    }
}
