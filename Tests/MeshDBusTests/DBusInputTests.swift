// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import Testing

@testable import MeshDBus

/// Both ends of a socket: what is written to one is read at the other.
private final class Ends {
    let reading: Int32
    let writing: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        (reading, writing) = (ends[0], ends[1])
    }

    deinit {
        close(reading)
        close(writing)
    }

    func write(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBytes { #expect(Glibc.write(writing, $0.baseAddress, $0.count) == bytes.count) }
    }

    /// With descriptors.
    func write(_ bytes: [UInt8], _ descriptors: [Int32]) {
        var bytes = bytes
        let length = MemoryLayout<cmsghdr>.size + descriptors.count * MemoryLayout<Int32>.size
        var control = [UInt8](repeating: 0, count: (length + 7) & ~7)
        // SCM_RIGHTS is 1.
        var header = cmsghdr()
        header.cmsg_len = length
        header.cmsg_level = SOL_SOCKET
        header.cmsg_type = 1
        control.withUnsafeMutableBytes { control in
            control.storeBytes(of: header, as: cmsghdr.self)
            descriptors.withUnsafeBytes { control[MemoryLayout<cmsghdr>.size...].copyBytes(from: $0) }
        }
        let count = bytes.withUnsafeMutableBytes { bytes in
            control.withUnsafeMutableBytes { control in
                var part = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
                return withUnsafeMutablePointer(to: &part) { part in
                    var message = msghdr()
                    message.msg_iov = part
                    message.msg_iovlen = 1
                    message.msg_control = control.baseAddress
                    message.msg_controllen = length
                    return sendmsg(writing, &message, 0)
                }
            }
        }
        #expect(count == bytes.count)
    }
}

/// How many descriptors of this process are that file.
private func openings(of descriptor: Int32) -> Int {
    var wanted = stat()
    guard fstat(descriptor, &wanted) == 0 else { return 0 }
    return (0..<Int32(4096)).count { number in
        var found = stat()
        return fstat(number, &found) == 0 && found.st_ino == wanted.st_ino && found.st_dev == wanted.st_dev
    }
}

struct DBusInputTests {
    @Test func `memory is taken for what has come, not for what is said to come`() throws {
        let (input, ends) = (DBusInput(), try Ends())
        var begin = Wire(bytes: [UInt8(ascii: "l"), 4, 1, 1], isBig: false)
        begin.number(UInt32(100 << 20))
        begin.number(UInt32(1))
        begin.number(UInt32(0))
        ends.write(begin.bytes[...])
        var came = begin.bytes.count
        for _ in 0..<40 {
            while case .some = input.read(ends.reading) {}
            #expect(try input.next() == nil)
            #expect(input.capacity <= 2 * came + 32_768)
            let portion = [UInt8](repeating: 0, count: 10_000)
            ends.write(portion[...])
            came += portion.count
        }
    }

    @Test func `a large message in small pieces is one message`() throws {
        let (input, ends) = (DBusInput(), try Ends())
        let large = Wire.signal("ay") { $0.counted { $0.bytes += [UInt8](repeating: 5, count: 300_000) } }
        let small = Wire.signal("y") { $0.bytes.append(1) }
        let stream = small + large + small + small
        var messages: [[UInt8]] = []
        for start in stride(from: 0, to: stream.count, by: 7_001) {
            ends.write(stream[start..<min(start + 7_001, stream.count)])
            while case .some = input.read(ends.reading) {}
            while let (_, bytes) = try input.next() { messages.append(Array(bytes)) }
        }
        #expect(messages == [small, large, small, small])
        _ = input.read(ends.reading)
        #expect(input.capacity <= 32_768)
    }

    @Test func `descriptors go with the message that they came with`() throws {
        let (input, ends, other) = (DBusInput(), try Ends(), try Ends())
        let begin = openings(of: other.reading)
        let message = Wire.signal("h", header: { $0.field(9, "u") { $0.number(UInt32(1)) } }) { $0.number(UInt32(0)) }
        ends.write(message, [other.reading])
        _ = input.read(ends.reading)
        let (header, bytes) = try #require(try input.next())
        do {
            let received = try DBusReceived(header, bytes, descriptors: try input.takeDescriptors(header))
            let (values, descriptors) = try received.arguments()
            #expect(values == descriptors.map { .descriptor($0) } && descriptors.count == 1)
            #expect(openings(of: other.reading) == begin + 2)
            values.closeDescriptors()
        }
        #expect(openings(of: other.reading) == begin)
    }

    @Test func `a message does not make more descriptors than came with it`() throws {
        let (input, ends, other) = (DBusInput(), try Ends(), try Ends())
        let begin = openings(of: other.reading)
        let message = Wire.signal("hh", header: { $0.field(9, "u") { $0.number(UInt32(1)) } }) { body in
            body.number(UInt32(0))
            body.number(UInt32(0))
        }
        ends.write(message, [other.reading])
        _ = input.read(ends.reading)
        let (header, bytes) = try #require(try input.next())
        do {
            let received = try DBusReceived(header, bytes, descriptors: try input.takeDescriptors(header))
            #expect(throws: DBusValueReader.missingDescriptor) { try received.arguments() }
            #expect(try received.arguments(takingDescriptors: false).values == [.descriptor(-1), .descriptor(-1)])
        }
        #expect(openings(of: other.reading) == begin)
    }

    @Test func `descriptors that no message speaks of are closed`() throws {
        let (input, ends, other) = (DBusInput(), try Ends(), try Ends())
        let begin = openings(of: other.reading)
        let message = Wire.signal("") { _ in }
        ends.write(message, [other.reading, other.reading])
        _ = input.read(ends.reading)
        _ = try #require(try input.next())
        #expect(try input.next() == nil)
        #expect(openings(of: other.reading) == begin)
        // And the next message gets its own.
        let speaking = Wire.signal("h", header: { $0.field(9, "u") { $0.number(UInt32(1)) } }) { $0.number(UInt32(0)) }
        ends.write(speaking, [ends.writing])
        _ = input.read(ends.reading)
        let (header, _) = try #require(try input.next())
        let descriptors = try input.takeDescriptors(header)
        #expect(descriptors.count == 1 && openings(of: ends.writing) == 2)
        for descriptor in descriptors { close(descriptor) }
    }

    @Test func `descriptors without end are the end`() throws {
        let (input, ends, other) = (DBusInput(), try Ends(), try Ends())
        // One message that goes on and on, with descriptors at each piece of it.
        let message = Wire.signal("ay") { $0.counted { $0.bytes += [UInt8](repeating: 5, count: 60_000) } }
        var outcomes: [DBusInput.Outcome] = []
        for piece in 0..<3 {
            ends.write(
                Array(message[piece * 1_000..<(piece + 1) * 1_000]), [Int32](repeating: other.reading, count: 100))
            outcomes.append(input.read(ends.reading))
        }
        #expect(outcomes == [.all, .all, .ended])
    }

    @Test func `whole messages with many descriptors are taken before more is read`() throws {
        let (input, ends, other) = (DBusInput(), try Ends(), try Ends())
        let message = Wire.signal("", header: { $0.field(9, "u") { $0.number(UInt32(130)) } }) { _ in }
        for _ in 0..<2 {
            #expect(!input.isFull)
            ends.write(message, [Int32](repeating: other.reading, count: 130))
            #expect(input.read(ends.reading) == .all)
        }
        #expect(input.isFull)
        let (header, _) = try #require(try input.next())
        for descriptor in try input.takeDescriptors(header) { close(descriptor) }
        #expect(!input.isFull)
    }
}
