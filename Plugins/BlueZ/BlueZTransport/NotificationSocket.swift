// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc
internal import MeshLoop

/// The socket that `AcquireNotify` gives: each datagram is a value. Used on the loop's thread only.
final class NotificationSocket {
    /// The longest value of an attribute (Core Specification, Vol 3 Part F §3.2.9), and some more for peers that break the
    /// rule.
    private static let largestValue = 1_024
    /// Values taken in one turn of the loop: others have their turn, too, however fast a peer sends.
    private static let valuesPerTurn = 64
    /// POLLRDHUP, which Glibc's module does not show (bits/poll.h): the peer sends no more.
    private static let peerShutDown: Int16 = 0x2000

    private let descriptor: Int32
    private var poll: LoopPoll?
    private var isOpen = true

    /// Owns the descriptor from here on.
    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        poll = nil
        if isOpen { Glibc.close(descriptor) }
    }

    /// `ended` is called once, when no more values come.
    func open(
        _ loop: EventLoop, _ handler: @escaping @Sendable (Data) -> Void, ended: @escaping () -> Void
    ) throws(LoopError) {
        let poll = try LoopPoll(loop, descriptor: descriptor) { [weak self] _, error in
            guard let self, isOpen else { return }
            if error != nil || !read(handler) {
                close()
                ended()
            }
        }
        poll.wait(for: .readable)
        self.poll = poll
    }

    func close() {
        guard isOpen else { return }
        isOpen = false
        poll = nil
        Glibc.close(descriptor)
    }

    /// False at the end. What is left over is told again, in the next turn.
    private func read(_ handler: (Data) -> Void) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: Self.largestValue, alignment: 1) { buffer in
            for _ in 0..<Self.valuesPerTurn where isOpen {
                let count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
                if count > 0 {
                    handler(Data(bytes: buffer.baseAddress!, count: count))
                } else if count == 0 {
                    // An empty value, or the end: a socket at its end says so in another way, too (R17).
                    if hasHungUp { return false }
                    handler(Data())
                } else if errno == EAGAIN {
                    return !hasHungUp
                } else if errno != EINTR {
                    return false
                }
            }
            return true
        }
    }

    private var hasHungUp: Bool {
        var facts = pollfd(fd: descriptor, events: Self.peerShutDown, revents: 0)
        return Glibc.poll(&facts, 1, 0) > 0 && facts.revents & (Int16(POLLHUP | POLLERR) | Self.peerShutDown) != 0
    }
}
