// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
public import MeshLoop
public import MeshTransportAPI

/// Tells the coordinator when connections may work again: an interface got an address or can carry packets.
///
/// It never says that the network is away: a host without any address still reaches `127.0.0.1`. What a transport finds
/// unreachable waits by itself, with a slow retry, and wakes with this. Used on the loop's thread only.
public final class NetworkMonitor {
    /// After the first news, so that an interface with several addresses is one change.
    private static let settlingTime: Duration = .seconds(1)
    /// Larger than any message to expect (netlink(7): 8 KiB are enough for all).
    private static let bufferSize = 16_384
    // linux/netlink.h, linux/rtnetlink.h; not in the C module Swift has.
    private static let familyNetlink: Int32 = 16
    private static let protocolRoute: Int32 = 0
    /// `RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR`
    private static let groups: UInt32 = 0x1 | 0x10 | 0x100

    private let descriptor: Int32
    private let timer: LoopTimer
    private var poll: LoopPoll?
    private var state = NetworkState()
    private let report: () -> Void
    private let log: LogSink

    /// Starts watching. Nil, with a line in the log, where the system does not allow it (some containers): everything works
    /// without, only later.
    public static func watch(
        loop: MeshLoop, coordinator: ReconnectionCoordinator, log: LogSink
    ) -> NetworkMonitor? {
        do throws(LoopError) {
            return try NetworkMonitor(loop: loop, log: log) {
                // Timers fire on the loop, where the coordinator lives.
                coordinator.assumeIsolated { $0.adapterChanged(AdapterSettings.network.name, isAvailable: true) }
            }
        } catch {
            log(.info, "the network is not watched; links come back a little later", [("reason", "\(error)")])
            return nil
        }
    }

    init(loop: MeshLoop, log: LogSink, report: @escaping () -> Void) throws(LoopError) {
        descriptor = try Self.openSocket()
        timer = LoopTimer(loop)
        self.report = report
        self.log = log
        do throws(LoopError) {
            let poll = try LoopPoll(loop, descriptor: descriptor) { [weak self] _, error in self?.readable(error) }
            self.poll = poll
            poll.wait(for: .readable)
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// Ends the watch. Call it before the last reference goes.
    public func stop() {
        guard poll != nil else { return }
        poll = nil
        timer.cancel()
        close(descriptor)
    }

    private static func openSocket() throws(LoopError) -> Int32 {
        let type = Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(familyNetlink, type, protocolRoute)
        if descriptor < 0 { throw failure("socket") }
        // struct sockaddr_nl: family (2), pad (2), port (4), groups (4)
        var address: [UInt32] = [UInt32(UInt16(familyNetlink)).asFirstHalf, 0, groups]
        let status = address.withUnsafeMutableBytes {
            bind(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
        if status != 0 {
            let error = failure("bind")
            close(descriptor)
            throw error
        }
        return descriptor
    }

    private static func failure(_ operation: String) -> LoopError {
        LoopError(kind: .system, operation: "netlink \(operation)", detail: String(cString: strerror(errno)))
    }

    private func readable(_ error: LoopError?) {
        if let error {
            log(.info, "the network is not watched any more", [("reason", "\(error)")])
            stop()
            return
        }
        var buffer = [UInt8](repeating: 0, count: Self.bufferSize)
        // Bounded: a storm of messages must not hold up the loop. Unread ones make the descriptor readable again.
        for _ in 0..<32 {
            var sender: [UInt32] = [0, 0, 0]
            var senderLength = socklen_t(12)
            let count = sender.withUnsafeMutableBytes { sender in
                recvfrom(
                    descriptor, &buffer, buffer.count, 0, sender.baseAddress!.assumingMemoryBound(to: sockaddr.self),
                    &senderLength)
            }
            if count < 0 {
                // ENOBUFS: the kernel had more to say than there was room for.
                if errno == ENOBUFS { take([.lost]) }
                return
            }
            // The kernel's port is 0; others have nothing to tell here.
            if sender[1] == 0 { take(NetlinkDecoder.changes(in: buffer[..<count])) }
        }
    }

    private func take(_ changes: [NetworkChange]) {
        var isNews = false
        for change in changes where state.take(change) { isNews = true }
        guard isNews, !timer.isScheduled else { return }
        timer.schedule(after: Self.settlingTime) { [weak self] in
            guard let self else { return }
            log(.debug, "the network changed")
            report()
        }
    }
}

extension UInt32 {
    /// A 16-bit value in the first two bytes in memory, whatever the byte order.
    fileprivate var asFirstHalf: UInt32 { UInt32(littleEndian: 1) == 1 ? self : self << 16 }
}
