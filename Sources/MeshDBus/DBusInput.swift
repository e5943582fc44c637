// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// What has been read from a connection's socket and not been handed on: whole messages, and the beginning of one.
///
/// libdbus could read, too. It would take 2 KiB at a time, and for each message some hundred steps to check what the bus has
/// checked, lists and locks: several times what a value of a radio costs in all of the host.
///
/// Used on the loop's thread only.
final class DBusInput {
    enum Outcome {
        /// There may be more.
        case some
        /// All that there was, or nothing.
        case all
        /// Nothing more will come.
        case ended
    }

    /// Read in one go.
    private static let portion = 16_384
    private static let usualSize = 2 * portion
    /// With so much that is not handed on, nothing more need be read.
    private static let enough = 65_536
    /// As many as one message of the kernel's can carry (`SCM_MAX_FD`), and so one of a bus.
    private static let descriptorLimit = 253
    /// SCM_RIGHTS, which Glibc's module does not show (bits/socket.h): descriptors.
    private static let rights: Int32 = 1

    private var buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: usualSize, alignment: 8)
    /// What has been read stands here.
    private var filled = 0..<0
    /// Those of messages that were not taken yet, in their order.
    private var descriptors: [Int32] = []

    deinit {
        buffer.deallocate()
        closeUnclaimed()
    }

    // MARK: Reading

    /// Reads once.
    func read(_ socket: Int32) -> Outcome {
        makeRoom()
        let room = UnsafeMutableRawBufferPointer(rebasing: buffer[filled.upperBound...])
        let count = receive(socket, room)
        if count > 0 { filled = filled.lowerBound..<filled.upperBound + count }
        // No message speaks of so many.
        if descriptors.count > Self.descriptorLimit, !hasMessage { return .ended }
        switch count {
        case 0: return .ended
        case room.count: return .some
        case 1...: return .all
        default: return errno == EAGAIN || errno == EINTR ? .all : .ended
        }
    }

    /// A portion fits behind what is there, and of a message that is larger about as much as has come.
    private func makeRoom() {
        if filled.isEmpty {
            filled = 0..<0
            closeUnclaimed()
            if buffer.count > Self.usualSize { move(to: Self.usualSize) }
            return
        }
        let missing = ((try? DBusHeader.length(ofMessage: waiting)) ?? 0) - filled.count
        let wanted = filled.count + max(Self.portion, min(missing, filled.count))
        if buffer.count - filled.lowerBound >= wanted { return }
        move(to: max(wanted, buffer.count))
    }

    /// What is there goes to the beginning of a buffer of this size.
    private func move(to size: Int) {
        if size == buffer.count {
            buffer.copyMemory(from: waiting)
        } else {
            let new = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 8)
            new.copyMemory(from: waiting)
            buffer.deallocate()
            buffer = new
        }
        filled = 0..<filled.count
    }

    /// As `recv`, with the descriptors that come along.
    private func receive(_ socket: Int32, _ room: UnsafeMutableRawBufferPointer) -> Int {
        let controlLength = MemoryLayout<cmsghdr>.size + Self.descriptorLimit * MemoryLayout<Int32>.size
        return withUnsafeTemporaryAllocation(byteCount: controlLength, alignment: 8) { control in
            var part = iovec(iov_base: room.baseAddress, iov_len: room.count)
            return withUnsafeMutablePointer(to: &part) { part in
                var message = msghdr()
                message.msg_iov = part
                message.msg_iovlen = 1
                message.msg_control = control.baseAddress
                message.msg_controllen = control.count
                let count = recvmsg(socket, &message, Int32(MSG_DONTWAIT | MSG_CMSG_CLOEXEC))
                guard count >= 0 else { return count }
                keepDescriptors(UnsafeRawBufferPointer(rebasing: control[..<message.msg_controllen]))
                // Some are lost, and nobody knows whose.
                return message.msg_flags & Int32(MSG_CTRUNC) == 0 ? count : 0
            }
        }
    }

    private func keepDescriptors(_ control: UnsafeRawBufferPointer) {
        let headerLength = MemoryLayout<cmsghdr>.size
        var offset = 0
        while control.count - offset >= headerLength {
            let header = control.loadUnaligned(fromByteOffset: offset, as: cmsghdr.self)
            let end = offset + Int(header.cmsg_len)
            guard header.cmsg_len >= headerLength, end <= control.count else { return }
            if header.cmsg_level == SOL_SOCKET, header.cmsg_type == Self.rights {
                for place in stride(from: offset + headerLength, to: end, by: MemoryLayout<Int32>.size) {
                    descriptors.append(control.loadUnaligned(fromByteOffset: place, as: Int32.self))
                }
            }
            offset = (end + 7) & ~7
        }
    }

    /// How many bytes there is room for.
    var capacity: Int { buffer.count }

    /// With nothing left that could speak of them, descriptors are nobody's.
    private func closeUnclaimed() {
        for descriptor in descriptors { close(descriptor) }
        descriptors = []
    }

    // MARK: Messages

    private var waiting: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer[filled]) }

    /// Whether ``next()`` gives something.
    var hasMessage: Bool {
        do throws(DBusError) {
            guard let length = try DBusHeader.length(ofMessage: waiting) else { return false }
            return length <= filled.count
        } catch {
            return true
        }
    }

    /// Whether reading more can wait.
    var isFull: Bool {
        (filled.count >= Self.enough || descriptors.count >= Self.descriptorLimit) && hasMessage
    }

    /// Takes the next message, whose bytes are lent until the next one is taken or something is read; nil when there is none.
    /// Throws when there is no way to go on.
    func next() throws(DBusError) -> (header: DBusHeader, bytes: UnsafeRawBufferPointer)? {
        if filled.isEmpty { closeUnclaimed() }
        guard let length = try DBusHeader.length(ofMessage: waiting), length <= filled.count else { return nil }
        let bytes = UnsafeRawBufferPointer(rebasing: waiting[..<length])
        filled = filled.lowerBound + length..<filled.upperBound
        return (try DBusHeader(bytes), bytes)
    }

    /// The descriptors of the message that was taken: the caller's to close.
    func takeDescriptors(_ header: DBusHeader) throws(DBusError) -> [Int32] {
        guard header.descriptors > 0 else { return [] }
        let count = Int(header.descriptors)
        guard count <= descriptors.count else { throw DBusWireReader.malformed }
        defer { descriptors.removeFirst(count) }
        return Array(descriptors[..<count])
    }
}
