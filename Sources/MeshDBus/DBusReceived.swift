// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// A message that arrived, with the descriptors that came with it.
final class DBusReceived: Sendable {
    private let header: DBusHeader
    private let bytes: [UInt8]
    private let descriptors: [Int32]

    /// Copies the bytes, and owns the descriptors from here on, also when it throws: for names that D-Bus does not allow.
    init(_ header: DBusHeader, _ bytes: UnsafeRawBufferPointer, descriptors: [Int32]) throws(DBusError) {
        self.header = header
        self.bytes = Array(bytes)
        self.descriptors = descriptors
        // Everything is set: a throw runs `deinit`.
        try header.checkNames(bytes)
    }

    deinit {
        for descriptor in descriptors { close(descriptor) }
    }

    // MARK: Header

    var kind: DBusHeader.Kind { header.kind }
    var sender: String? { text(header.sender) }
    var path: String? { text(header.path) }
    var interface: String? { text(header.interface) }
    var member: String? { text(header.member) }
    var replySerial: UInt32 { header.replySerial }

    private func text(_ range: Range<Int>) -> String? {
        range.isEmpty ? nil : String(decoding: bytes[range], as: UTF8.self)
    }

    /// Where the answer to this call goes; nil when its sender wants none.
    var replyAddress: DBusReplyAddress? {
        guard header.wantsReply, let sender else { return nil }
        return DBusReplyAddress(sender: sender, serial: header.serial)
    }

    // MARK: Arguments

    /// The arguments, and the descriptors among them, which are the caller's to close. Not taken, they are -1.
    func arguments(
        takingDescriptors: Bool = true
    ) throws(DBusError) -> (values: [DBusValue], descriptors: [Int32]) {
        let result = bytes.withUnsafeBytes { bytes -> Result<([DBusValue], [Int32]), DBusError> in
            var reader = reader(of: bytes, takingDescriptors ? descriptors : nil)
            do throws(DBusError) {
                let values = try reader.values(header.signature)
                guard reader.reader.offset == bytes.count else { throw DBusWireReader.malformed }
                return .success((values, reader.copies))
            } catch {
                for descriptor in reader.copies { close(descriptor) }
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// What an error message says.
    var error: DBusError {
        let name = text(header.errorName) ?? DBusError.failed
        let message = bytes.withUnsafeBytes { bytes -> String? in
            guard let first = header.signature.first, bytes[first] == UInt8(ascii: "s") else { return nil }
            var reader = reader(of: bytes, nil)
            guard case .string(let text)? = try? reader.value(first..<first + 1) else { return nil }
            return text
        }
        return DBusError(name, message ?? "")
    }

    private func reader(of bytes: UnsafeRawBufferPointer, _ descriptors: [Int32]?) -> DBusValueReader {
        DBusValueReader(
            DBusWireReader(bytes, isSwapped: header.isSwapped, at: header.body.lowerBound), descriptors: descriptors)
    }
}

/// Whom a call came from, and which it was.
struct DBusReplyAddress: Sendable {
    var sender: String
    var serial: UInt32
}
