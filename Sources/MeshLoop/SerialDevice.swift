// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV
internal import CSerialLine
internal import Glibc

/// Serial ports, as system calls. Some wait for the device: a wedged USB one answers after 5 s. Not for the loop's thread.
enum SerialDevice {
    /// The descriptor of a port that is ready for use: locked, raw, non-blocking, and nobody's controlling terminal.
    ///
    /// The lock comes before anything that the board could notice. Closing the descriptor undoes it, and nothing else: the
    /// lines stay as they are, since dropping DTR resets many boards.
    static func open(_ line: SerialLine) throws(LoopError) -> Int32 {
        let operation = "open \(line.path)"
        // Looked at first: opening some devices that are no ports has effects.
        var facts = stat()
        guard stat(line.path, &facts) == 0 else { throw LoopError(status: -errno, operation: operation) }
        guard facts.st_mode & S_IFMT == S_IFCHR else {
            throw LoopError(kind: .invalidArgument, operation: operation, detail: "this is no serial port")
        }
        // Without O_NONBLOCK a port with modem lines waits for a carrier.
        let descriptor = Glibc.open(line.path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == EBUSY { throw busy(line.path, operation, ourDescriptor: nil) }
            throw LoopError(status: -errno, operation: operation)
        }
        do throws(LoopError) {
            try prepare(descriptor, line, operation)
        } catch {
            close(descriptor)
            throw error
        }
        return descriptor
    }

    private static func prepare(_ descriptor: Int32, _ line: SerialLine, _ operation: String) throws(LoopError) {
        var facts = stat()
        guard isatty(descriptor) == 1, fstat(descriptor, &facts) == 0 else {
            throw LoopError(kind: .invalidArgument, operation: operation, detail: "this is no serial port")
        }
        // Programs that ask: ours, picocom, tio, and pyserial with `exclusive`.
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw errno == EWOULDBLOCK
                ? busy(line.path, operation, ourDescriptor: descriptor)
                : LoopError(status: -errno, operation: operation)
        }
        // Programs that do not. A pseudo terminal would keep the mark after the death of this process, for as long as its
        // other end is open.
        if !SerialHolder.isPseudoTerminal(facts) {
            try LoopError.check(-mh_serial_line_make_exclusive(descriptor), operation)
        }
        if let control = line.control { try setControl(descriptor, control, operation) }
        var actual: UInt32 = 0
        let failure = mh_serial_line_configure(descriptor, line.baud, line.hardwareFlowControl, &actual)
        guard failure != EDOM else {
            throw LoopError(
                kind: .invalidArgument, operation: operation,
                detail: "the port cannot do \(line.baud) baud; it would do \(actual)")
        }
        try LoopError.check(-failure, operation)
    }

    /// A port without lines, such as a pseudo terminal, has nothing to set.
    static func setControl(_ descriptor: Int32, _ control: SerialControl, _ operation: String) throws(LoopError) {
        let failure = mh_serial_line_set_control(descriptor, control.dtr, control.rts)
        if failure != ENOTTY { try LoopError.check(-failure, operation) }
    }

    private static func busy(_ path: String, _ operation: String, ourDescriptor: Int32?) -> LoopError {
        let holders = SerialHolder.all(of: path, except: ourDescriptor)
        let names = holders.isEmpty ? "another program" : holders.map(\.description).joined(separator: " and ")
        return LoopError(kind: .busy, operation: operation, detail: "it is in use by \(names)")
    }
}
