// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV

/// Watches a descriptor that somebody else owns. Dropping it ends the watch. Used on the loop's thread only.
public final class LoopPoll {
    /// What to wait for, and what has come.
    public struct Events: OptionSet, Sendable {
        public let rawValue: Int32

        public init(rawValue: Int32) {
            self.rawValue = rawValue
        }

        /// There is something to read, or the peer has ended.
        public static let readable = Events(rawValue: Int32(UV_READABLE.rawValue))
        /// There is room to write.
        public static let writable = Events(rawValue: Int32(UV_WRITABLE.rawValue))
    }

    private let uv: UnsafeMutablePointer<uv_poll_t>
    private let onEvents: (Events, LoopError?) -> Void

    /// The descriptor is set non-blocking and must stay open as long as this object lives.
    public init(
        _ loop: EventLoop, descriptor: Int32, onEvents: @escaping (Events, LoopError?) -> Void
    ) throws(LoopError) {
        assert(loop.isOnLoop)
        uv = .allocate(capacity: 1)
        let status = uv_poll_init(loop.uv, uv, descriptor)
        if status < 0 {
            // `deinit` does not run: a property has no value yet.
            uv.deallocate()
            throw LoopError(status: status, operation: "poll descriptor \(descriptor)")
        }
        self.onEvents = onEvents
        uv.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        uv.pointee.data = nil
        uv_close(handle(uv)) { $0?.deallocate() }
    }

    /// Waits for these from now on; an empty set waits for nothing.
    public func wait(for events: Events) {
        if events.isEmpty {
            uv_poll_stop(uv)
        } else {
            uv_poll_start(uv, events.rawValue) { LoopPoll.happened($0, $1, $2) }
        }
    }

    private static func happened(_ pointer: UnsafeMutablePointer<uv_poll_t>?, _ status: Int32, _ events: Int32) {
        guard let data = pointer?.pointee.data else { return }
        let poll = Unmanaged<LoopPoll>.fromOpaque(data).takeUnretainedValue()
        poll.onEvents(Events(rawValue: events), status < 0 ? LoopError(status: status, operation: "poll") : nil)
    }
}
