// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// Tells systemd how the service is: one datagram to `$NOTIFY_SOCKET` (sd_notify(3)). Without that variable it does
/// nothing.
struct SystemdNotifier {
    private let address: sockaddr_un?
    private let addressLength: socklen_t
    /// How often `WATCHDOG=1` is wanted: half of what systemd would wait (sd_watchdog_enabled(3)); nil if not at all.
    let watchdogInterval: Duration?

    init(environment: [String: String], pid: Int32 = getpid()) {
        (address, addressLength) = Self.address(of: environment["NOTIFY_SOCKET"] ?? "")
        let isForUs = environment["WATCHDOG_PID"].map { Int32($0) == pid } ?? true
        if isForUs, let microseconds = environment["WATCHDOG_USEC"].flatMap(Int64.init), microseconds > 0 {
            // Never all the time, however short it is.
            watchdogInterval = max(.microseconds(microseconds / 2), .milliseconds(1))
        } else {
            watchdogInterval = nil
        }
    }

    /// Whether a service manager listens.
    var isActive: Bool { address != nil }

    /// Listeners are bound and the config is accepted.
    func ready(status: String) { send("READY=1\nSTATUS=\(status)") }

    /// The config is being read again. `now` is CLOCK_MONOTONIC, as `EventLoop.now` gives it.
    func reloading(now: Duration) {
        send("RELOADING=1\nMONOTONIC_USEC=\(Int64(now / .microseconds(1)))")
    }

    func stopping() { send("STOPPING=1") }
    func watchdog() { send("WATCHDOG=1") }
    func status(_ text: String) { send("STATUS=\(text)") }

    private func send(_ text: String) {
        guard var address else { return }
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                // Nothing can be done about a manager that does not listen; it must not hold the loop up.
                _ = sendto(descriptor, bytes, bytes.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL), $0, addressLength)
            }
        }
    }

    private static func address(of path: String) -> (sockaddr_un?, socklen_t) {
        var address = sockaddr_un()
        var bytes = Array(path.utf8)
        let capacity = MemoryLayout.size(ofValue: address.sun_path)
        guard let first = bytes.first, first == UInt8(ascii: "/") || first == UInt8(ascii: "@"), bytes.count < capacity
        else { return (nil, 0) }
        // An abstract socket is written with @ and begins with a zero byte.
        if first == UInt8(ascii: "@") { bytes[0] = 0 }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        return (address, socklen_t(MemoryLayout<sa_family_t>.size + bytes.count))
    }
}
