// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
public import MeshLoop

/// A pair of pseudo terminals: a serial port and, behind it, a device that the test plays. Used on the loop's thread.
///
/// Dropping it, or ``unplug()``, hangs the port up and removes its file.
public final class PseudoTerminal {
    /// The port's file.
    public let path: String
    /// What the device has received and the test has not taken.
    public private(set) var received: [UInt8] = []
    /// Called after bytes were received.
    public var onReceived: (() -> Void)?
    private var device: Int32
    /// Kept open, without a lock: with nobody at the port the device would read an error, and see no new opening.
    private var port: Int32 = -1
    private var poll: LoopPoll?
    private var outgoing: [UInt8] = []
    /// While set, the device takes no bytes.
    public var isStalled = false { didSet { watch() } }

    public init(_ loop: EventLoop) throws(LoopError) {
        device = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
        var unlock: Int32 = 0
        var number: UInt32 = 0
        // TIOCSPTLCK and TIOCGPTN (asm-generic/ioctls.h), which Glibc's module does not show.
        guard device >= 0, ioctl(device, 0x4004_5431, &unlock) == 0, ioctl(device, 0x8004_5430, &number) == 0 else {
            throw LoopError(kind: .system, operation: "open /dev/ptmx", detail: "errno \(errno)")
        }
        path = "/dev/pts/\(number)"
        // Raw from the beginning: what is written before the port is opened must not be echoed.
        port = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
        let line = UnsafeMutablePointer<termios>.allocate(capacity: 1)
        defer { line.deallocate() }
        tcgetattr(port, line)
        cfmakeraw(line)
        tcsetattr(port, TCSANOW, line)
        poll = try LoopPoll(loop, descriptor: device) { [weak self] events, _ in self?.happened(events) }
        watch()
    }

    deinit {
        unplug()
    }

    /// The cable is pulled.
    public func unplug() {
        guard device >= 0 else { return }
        poll = nil
        close(device)
        close(port)
        device = -1
    }

    /// The device sends.
    public func send(_ bytes: some Sequence<UInt8>) {
        outgoing += bytes
        flush()
    }

    /// All that was received since the last time.
    public func take() -> [UInt8] {
        defer { received = [] }
        return received
    }

    private func watch() {
        var events: LoopPoll.Events = isStalled ? [] : .readable
        if !outgoing.isEmpty { events.insert(.writable) }
        poll?.wait(for: events)
    }

    private func happened(_ events: LoopPoll.Events) {
        if !outgoing.isEmpty { flush() }
        guard !isStalled else { return }
        let count = withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 1) { buffer in
            let count = read(device, buffer.baseAddress, buffer.count)
            if count > 0 { received += buffer.prefix(count) }
            return count
        }
        if count > 0 { onReceived?() }
    }

    private func flush() {
        guard device >= 0 else { return }
        let count = outgoing.withUnsafeBytes { write(device, $0.baseAddress, $0.count) }
        if count > 0 { outgoing.removeFirst(count) }
        watch()
    }
}
