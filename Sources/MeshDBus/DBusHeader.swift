// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CDBus
internal import Glibc

/// The header of a message that arrived (D-Bus Specification, "Message Format"): what it says, and where its texts stand in the
/// message's bytes. What is missing is empty.
struct DBusHeader: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case methodCall, methodReturn, error, signal
        /// A kind that a later version of the specification may bring; to be ignored.
        case other
    }

    /// What comes before the fields.
    private static let fixedLength = 16
    /// "Maximum length of a message".
    private static let maximumLength = 1 << 27
    private static let protocolVersion = 1
    /// A field's value is in an array, in a structure, in a variant.
    private static let fieldDepth = 3

    /// The fields that are looked at, by their codes ("Header Fields").
    private enum Field: UInt8 {
        case path = 1, interface, member, errorName, replySerial, destination, sender, signature, descriptors
        /// Where the sender runs (libdbus 1.13, `DBUS_HEADER_FIELD_CONTAINER_INSTANCE`).
        case container

        var type: UInt8 {
            switch self {
            case .path, .container: UInt8(ascii: "o")
            case .interface, .member, .errorName, .destination, .sender: UInt8(ascii: "s")
            case .replySerial, .descriptors: UInt8(ascii: "u")
            case .signature: UInt8(ascii: "g")
            }
        }
    }

    var kind: Kind
    var wantsReply: Bool
    var serial: UInt32
    var replySerial: UInt32 = 0
    /// How many descriptors came with it.
    var descriptors: UInt32 = 0
    var sender = 0..<0
    var path = 0..<0
    var interface = 0..<0
    var member = 0..<0
    var errorName = 0..<0
    var destination = 0..<0
    var container = 0..<0
    var signature = 0..<0
    var body = 0..<0
    var isSwapped: Bool
    /// Those that are there, each a bit.
    private var fields: UInt16 = 0

    /// The length of the message that begins with these bytes; nil while there are too few to tell.
    static func length(ofMessage bytes: UnsafeRawBufferPointer) throws(DBusError) -> Int? {
        guard bytes.count >= fixedLength else { return nil }
        let isSwapped = try isSwapped(bytes)
        func number(at offset: Int) -> Int {
            let number = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
            return Int(isSwapped ? number.byteSwapped : number)
        }
        let fields = number(at: 12)
        let length = ((fixedLength + fields + 7) & ~7) + number(at: 4)
        guard fields <= DBUS_MAXIMUM_ARRAY_LENGTH, length <= maximumLength else { throw DBusWireReader.malformed }
        return length
    }

    private static func isSwapped(_ bytes: UnsafeRawBufferPointer) throws(DBusError) -> Bool {
        switch bytes[0] {
        case UInt8(ascii: "l"): 1.littleEndian != 1
        case UInt8(ascii: "B"): 1.bigEndian != 1
        default: throw DBusWireReader.malformed
        }
    }

    /// Reads the header of a whole message. Names in it are not looked at: see ``checkNames(_:)``.
    init(_ bytes: UnsafeRawBufferPointer) throws(DBusError) {
        guard bytes.count >= Self.fixedLength else { throw DBusWireReader.malformed }
        isSwapped = try Self.isSwapped(bytes)
        guard bytes[1] != 0, bytes[3] == Self.protocolVersion else { throw DBusWireReader.malformed }
        kind =
            switch bytes[1] {
            case 1: .methodCall
            case 2: .methodReturn
            case 3: .error
            case 4: .signal
            default: .other
            }
        wantsReply = bytes[2] & 1 == 0
        var reader = DBusWireReader(bytes, isSwapped: isSwapped, at: 8)
        serial = try reader.number()
        let fields = try reader.array(alignedTo: 8)
        while reader.offset < fields.upperBound { try readField(&reader) }
        guard reader.offset == fields.upperBound else { throw DBusWireReader.malformed }
        try reader.align(to: 8)
        body = reader.offset..<bytes.count
        guard serial != 0, hasRequiredFields else { throw DBusWireReader.malformed }
    }

    private mutating func readField(_ reader: inout DBusWireReader) throws(DBusError) {
        try reader.align(to: 8)
        let code: UInt8 = try reader.number()
        let signature = try reader.signature()
        guard let field = Field(rawValue: code) else {
            // A later version's.
            guard code != 0,
                try reader.endOfType(signature.lowerBound, within: signature.upperBound) == signature.upperBound
            else { throw DBusWireReader.malformed }
            var values = DBusValueReader(reader, descriptors: nil)
            _ = try values.value(signature, depth: Self.fieldDepth)
            reader = values.reader
            return
        }
        guard !has(field), signature.count == 1, reader.bytes[signature.lowerBound] == field.type else {
            throw DBusWireReader.malformed
        }
        fields |= 1 << code
        switch field {
        case .path: path = try reader.text()
        case .container: container = try reader.text()
        case .interface: interface = try reader.text()
        case .member: member = try reader.text()
        case .errorName: errorName = try reader.text()
        case .destination: destination = try reader.text()
        case .sender: sender = try reader.text()
        case .signature: self.signature = try reader.signature()
        case .descriptors: descriptors = try reader.number()
        case .replySerial:
            replySerial = try reader.number()
            guard replySerial != 0 else { throw DBusWireReader.malformed }
        }
    }

    private func has(_ field: Field) -> Bool { fields & 1 << field.rawValue != 0 }

    private var hasRequiredFields: Bool {
        switch kind {
        case .methodCall: has(.path) && has(.member)
        case .methodReturn: has(.replySerial)
        case .error: has(.errorName) && has(.replySerial)
        case .signal: has(.path) && has(.interface) && has(.member)
        case .other: true
        }
    }

    /// Throws unless all names are what D-Bus allows ("Valid Names"). A step of its own: who compares them with names that are
    /// valid need not take it.
    func checkNames(_ bytes: UnsafeRawBufferPointer) throws(DBusError) {
        let reader = DBusWireReader(bytes, isSwapped: isSwapped, at: 0)
        // Those are what libdbus tells its own program by.
        let (noPath, noInterface) = (DBUS_PATH_LOCAL, DBUS_INTERFACE_LOCAL)
        if has(.path) { try reader.check(path) { strcmp($0, noPath) == 0 ? 0 : dbus_validate_path($0, nil) } }
        if has(.interface) {
            try reader.check(interface) { strcmp($0, noInterface) == 0 ? 0 : dbus_validate_interface($0, nil) }
        }
        if has(.member) { try reader.check(member) { dbus_validate_member($0, nil) } }
        if has(.errorName) { try reader.check(errorName) { dbus_validate_error_name($0, nil) } }
        if has(.destination) { try reader.check(destination) { dbus_validate_bus_name($0, nil) } }
        if has(.sender) { try reader.check(sender) { dbus_validate_bus_name($0, nil) } }
        if has(.container) { try reader.check(container) { dbus_validate_path($0, nil) } }
        try reader.checkTypes(signature)
    }
}
