// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

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
    var signature = 0..<0
    var body = 0..<0
    var isSwapped: Bool

    /// The length of the message that begins with these bytes; nil while there are too few to tell.
    static func length(ofMessage bytes: UnsafeRawBufferPointer) throws(DBusError) -> Int? {
        guard bytes.count >= fixedLength else { return nil }
        let isSwapped = try isSwapped(bytes)
        func number(at offset: Int) -> Int {
            let number = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
            return Int(isSwapped ? number.byteSwapped : number)
        }
        let length = ((fixedLength + number(at: 12) + 7) & ~7) + number(at: 4)
        guard length <= maximumLength else { throw DBusWireReader.malformed }
        return length
    }

    private static func isSwapped(_ bytes: UnsafeRawBufferPointer) throws(DBusError) -> Bool {
        switch bytes[0] {
        case UInt8(ascii: "l"): 1.littleEndian != 1
        case UInt8(ascii: "B"): 1.bigEndian != 1
        default: throw DBusWireReader.malformed
        }
    }

    /// Reads the header of a whole message.
    init(_ bytes: UnsafeRawBufferPointer) throws(DBusError) {
        guard bytes.count >= Self.fixedLength else { throw DBusWireReader.malformed }
        isSwapped = try Self.isSwapped(bytes)
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
    }

    private mutating func readField(_ reader: inout DBusWireReader) throws(DBusError) {
        try reader.align(to: 8)
        let code: UInt8 = try reader.number()
        let signature = try reader.signature()
        let type = signature.count == 1 ? reader.bytes[signature.lowerBound] : 0
        switch (code, type) {
        case (1, UInt8(ascii: "o")): path = try reader.text()
        case (2, UInt8(ascii: "s")): interface = try reader.text()
        case (3, UInt8(ascii: "s")): member = try reader.text()
        case (4, UInt8(ascii: "s")): errorName = try reader.text()
        case (5, UInt8(ascii: "u")): replySerial = try reader.number()
        case (7, UInt8(ascii: "s")): sender = try reader.text()
        case (8, UInt8(ascii: "g")): self.signature = try reader.signature()
        case (9, UInt8(ascii: "u")): descriptors = try reader.number()
        case (1...5, _), (7...9, _): throw DBusWireReader.malformed
        default:
            // The destination, which is this connection, or a field of a later version.
            var values = DBusValueReader(reader, descriptors: [])
            _ = try values.value(signature)
            reader = values.reader
        }
    }
}
