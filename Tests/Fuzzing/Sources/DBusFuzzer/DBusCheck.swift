// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc

@testable import MeshDBus

/// What must hold for any bytes from a bus. A message is refused or read as libdbus does it, what was read is written as a message
/// that reads back, and wherever the stream of them is cut, the same messages come out of it, in no more memory than it needs.
///
/// The first byte says what the rest is: a stream of messages; or types and what they are said to be, around which a message is
/// made whose lengths are right. The second one is the seed of where the stream is cut.
enum DBusCheck {
    static func run(_ input: UnsafeRawBufferPointer) {
        guard input.count >= 2 else { return }
        let (settings, seed) = (input[0], input[1])
        let rest = UnsafeRawBufferPointer(rebasing: input[2...])
        let bytes = settings & 1 == 0 ? Array(rest) : message(around: rest, isBig: settings & 2 != 0)
        let messages = messages(bytes)
        for message in messages { check(message) }
        // The same again and again, so that it is more than is read in one go.
        let repeats = settings & 4 == 0 ? 1 : Int(seed)
        cut(Array(repeatElement(bytes, count: repeats).joined()), seed)
        if settings & 1 == 0 { agree(bytes) }
    }

    // MARK: Messages

    /// A signal with a signature, which its length precedes, and the rest as its arguments.
    private static func message(around input: UnsafeRawBufferPointer, isBig: Bool) -> [UInt8] {
        let signature = input.dropFirst().prefix(Int(input.first ?? 0))
        let body = input.dropFirst(1 + signature.count)
        func number(_ number: Int) -> [UInt8] {
            let number = UInt32(number)
            return withUnsafeBytes(of: isBig ? number.bigEndian : number.littleEndian) { Array($0) }
        }
        func text(_ code: UInt8, _ type: Unicode.Scalar, _ text: String) -> [UInt8] {
            let field = [code, 1, UInt8(ascii: type), 0] + number(text.utf8.count) + Array(text.utf8) + [0]
            return field + Array(repeating: 0, count: -field.count & 7)
        }
        let fields =
            text(1, "o", "/") + text(2, "s", "a.b") + text(3, "s", "C")
            + [8, 1, UInt8(ascii: "g"), 0, UInt8(signature.count)] + Array(signature) + [0]
        let head = [UInt8(ascii: isBig ? "B" : "l"), 4, 0, 1] + number(body.count) + number(1) + number(fields.count)
        return head + fields + Array(repeating: 0, count: -fields.count & 7) + Array(body)
    }

    /// The messages that a stream begins with, up to one that is none.
    private static func messages(_ bytes: [UInt8]) -> [[UInt8]] {
        var messages: [[UInt8]] = []
        var rest = bytes[...]
        while let length = try? rest.withUnsafeBytes({ try DBusHeader.length(ofMessage: $0) }), length <= rest.count {
            let message = Array(rest.prefix(length))
            guard (try? message.withUnsafeBytes { try DBusHeader($0) }) != nil else { break }
            messages.append(message)
            rest = rest.dropFirst(length)
        }
        return messages
    }

    private static func check(_ bytes: [UInt8]) {
        agree(bytes)
        guard let message = received(bytes), let values = try? message.arguments().values else { return }
        // What was read can be written, and is the same then.
        guard let written = try? DBusMessage(signal: "C", path: "/", interface: "a.b", destination: nil, values) else {
            preconditionFailure("what was read cannot be written")
        }
        let again = LibraryMessage.bytes(of: written)
        guard let back = try? received(again)?.arguments().values else { preconditionFailure("written and not read") }
        precondition(back.isSame(as: values), "other values")
        take(bytes, values)
    }

    /// The short way, which makes no values, finds what the long way does.
    private static func take(_ bytes: [UInt8], _ values: [DBusValue]) {
        let property = DBusBytesProperty(sender: "org.bluez", path: "/", interface: "org.bluez.X", name: "Value")
        let takers = DBusBytesTakers()
        let log = TakenValue()
        takers.set(property, owner: ":1.2") { log.value = Array($0) }
        bytes.withUnsafeBytes { bytes in
            guard let header = try? DBusHeader(bytes) else { return }
            precondition(takers.take(header, bytes) == (log.value != nil), "taken and not handed on")
        }
        guard let taken = log.value else { return }
        precondition(
            values == [
                .string("org.bluez.X"),
                .dictionary(key: "s", value: "v", [.string("Value"): .variant(.bytes(taken))]),
                .array(element: "s", []),
            ], "another value")
    }

    private final class TakenValue: @unchecked Sendable {
        // Sendable: one thread makes it, has it set and reads it.
        var value: [UInt8]?
    }

    private static func received(_ bytes: [UInt8]) -> DBusReceived? {
        bytes.withUnsafeBytes { bytes in
            guard let length = try? DBusHeader.length(ofMessage: bytes), length == bytes.count else { return nil }
            return (try? DBusHeader(bytes)).flatMap { try? DBusReceived($0, bytes, descriptors: []) }
        }
    }

    // MARK: libdbus

    /// libdbus takes the same messages for valid ones, and finds the same in them.
    private static func agree(_ bytes: [UInt8]) {
        let theirs = LibraryMessage(bytes)
        let ours: [DBusValue]
        let message = received(bytes)
        do throws(DBusError) {
            guard let message else {
                // It takes the first message of several, and some types that are nested more deeply than is allowed.
                precondition(
                    theirs == nil || !isWhole(bytes) || isTooDeep(bytes), "refused what libdbus takes: \(bytes)")
                return
            }
            ours = try message.arguments().values
        } catch {
            precondition(
                theirs == nil || error == DBusWireReader.tooDeep || error == DBusValueReader.missingDescriptor,
                "refused what libdbus takes: \(bytes)")
            return
        }
        guard let theirs else {
            // Of a stream without descriptors it believes no number of them. And it refuses names that only begin as its own.
            let isLocal =
                message?.interface?.hasPrefix("org.freedesktop.DBus.Local") == true
                || message?.path?.hasPrefix("/org/freedesktop/DBus/Local") == true
            let header = bytes.withUnsafeBytes { try? DBusHeader($0) }
            precondition(isLocal || header?.descriptors != 0, "took what libdbus refuses: \(bytes)")
            return
        }
        precondition(ours.isSame(as: theirs.values), "other values than libdbus's: \(bytes)")
    }

    private static func isWhole(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { (try? DBusHeader.length(ofMessage: $0)) == bytes.count }
    }

    private static func isTooDeep(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { (bytes) -> Bool in
            do throws(DBusError) {
                try DBusHeader(bytes).checkNames(bytes)
                return false
            } catch {
                return error == DBusWireReader.tooDeep
            }
        }
    }

    // MARK: Streams

    /// What comes out of a socket in pieces is what was written to it.
    private static func cut(_ bytes: [UInt8], _ seed: UInt8) {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else { preconditionFailure("socketpair") }
        defer { for end in ends { close(end) } }
        var state = UInt64(seed) &+ 1
        func random(_ limit: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % limit
        }
        let width = [8, 60, 2_000, 40_000][Int(seed & 3)]
        let input = DBusInput()
        var (taken, isBroken, position, peak) = ([[UInt8]](), false, 0, 0)
        var takenBytes = 0
        func takeAll() {
            do throws(DBusError) {
                while let (_, message) = try input.next() {
                    takenBytes += message.count
                    taken.append(Array(message))
                }
            } catch {
                isBroken = true
            }
        }
        while position < bytes.count, !isBroken {
            let end = min(position + 1 + random(width), bytes.count)
            let written = bytes[position..<end].withUnsafeBytes { write(ends[1], $0.baseAddress, $0.count) }
            precondition(written == end - position, "not written")
            position = end
            while case .some = input.read(ends[0]) {}
            peak = max(peak, position - takenBytes)
            precondition(input.capacity <= max(32_768, 2 * peak + 16_384), "more memory than there are bytes")
            if input.isFull || random(3) > 0 { takeAll() }
        }
        if !isBroken { takeAll() }
        precondition(taken == messages(bytes), "cut otherwise gives other messages")
    }
}
