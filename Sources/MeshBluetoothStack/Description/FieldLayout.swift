// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// One field of a packet as the specification lays it out; tables of them are what the describers read by.
struct FieldLayout: Sendable {
    indirect enum Kind: Sendable {
        /// So many bytes, the least significant first.
        case number(Int)
        case signed
        case hex(Int)
        case flag
        /// A number of units of so many microseconds, shown in milliseconds.
        case milliseconds(byteCount: Int, unit: Int64)
        case choice([UInt8: String])
        case bits([String])
        case status
        case address
        case opcode
        case uuid(Int)
        /// Whatever is left: 2 or 16 bytes.
        case uuidRest
        case bytes(Int)
        case key
        case rest
        /// A length byte, that much of advertising data, and padding up to so many bytes.
        case advertising(padding: Int)
        /// A count byte, and the fields so many times.
        case array([FieldLayout])
        /// The fields once for each bit of the field before.
        case perBit([FieldLayout])
    }

    var name: String
    var kind: Kind

    init(_ name: String, _ kind: Kind) {
        self.name = name
        self.kind = kind
    }
}

extension FieldLayout {
    static let handle = FieldLayout("connection_handle", .hex(2))
    static let status = FieldLayout("status", .status)
    static let reason = FieldLayout("reason", .status)

    static func number(_ name: String, _ byteCount: Int = 1) -> FieldLayout { FieldLayout(name, .number(byteCount)) }
    static func hex(_ name: String, _ byteCount: Int = 1) -> FieldLayout { FieldLayout(name, .hex(byteCount)) }
    static func flag(_ name: String) -> FieldLayout { FieldLayout(name, .flag) }
    static func signed(_ name: String) -> FieldLayout { FieldLayout(name, .signed) }
    static func address(_ name: String) -> FieldLayout { FieldLayout(name, .address) }
    static func key(_ name: String) -> FieldLayout { FieldLayout(name, .key) }
    static func bits(_ name: String, _ bits: [String]) -> FieldLayout { FieldLayout(name, .bits(bits)) }

    static func choice(_ name: String, _ words: [String]) -> FieldLayout {
        FieldLayout(
            name, .choice(Dictionary(uniqueKeysWithValues: words.enumerated().map { (UInt8($0.offset), $0.element) })))
    }

    /// Units of 0.625 ms, as of scanning and advertising.
    static func slots(_ name: String, _ byteCount: Int = 2) -> FieldLayout {
        FieldLayout(name, .milliseconds(byteCount: byteCount, unit: 625))
    }

    /// Units of 1.25 ms, as of connections.
    static func interval(_ name: String) -> FieldLayout { FieldLayout(name, .milliseconds(byteCount: 2, unit: 1_250)) }

    /// Units of 10 ms.
    static func centiseconds(_ name: String) -> FieldLayout {
        FieldLayout(name, .milliseconds(byteCount: 2, unit: 10_000))
    }

    static func addressKind(_ name: String) -> FieldLayout {
        FieldLayout(
            name,
            .choice([
                0: "public", 1: "random", 2: "public-identity", 3: "random-identity", 0xFE: "unresolved",
                0xFF: "anonymous",
            ]))
    }

    static func phys(_ name: String) -> FieldLayout { bits(name, ["1m", "2m", "coded"]) }
    static func phy(_ name: String) -> FieldLayout {
        FieldLayout(name, .choice([0: "none", 1: "1m", 2: "2m", 3: "coded"]))
    }
}

extension PacketDescription {
    /// Reads fields one after the other. What was read before an error stays.
    mutating func read(_ layouts: [FieldLayout], _ reader: inout ByteReader) throws(DecodeError) {
        try Self.read(layouts, &reader, &fields)
    }

    /// What a later version of the specification, or a vendor, has put behind the known fields.
    mutating func readAdditional(_ reader: inout ByteReader) {
        if reader.remaining > 0 { fields.append(Field("additional", .bytes(reader.readRest()))) }
    }

    private static func read(
        _ layouts: [FieldLayout], _ reader: inout ByteReader, _ fields: inout [Field]
    ) throws(DecodeError) {
        var last: UInt64 = 0
        for layout in layouts {
            let name = layout.name
            switch layout.kind {
            case .number(let count):
                last = try number(count, &reader)
                fields.append(Field(name, .number(Int64(truncatingIfNeeded: last))))
            case .signed:
                // 127 stands for "not available" (Vol 4 Part E §7.7.65.2, §7.7.65.13).
                let value = try reader.read(Int8.self)
                fields.append(Field(name, value == 127 ? .text("unavailable") : .number(Int64(value))))
            case .hex(let count):
                fields.append(Field(name, .text(hex(try number(count, &reader), byteCount: count))))
            case .flag:
                fields.append(Field(name, .flag(try reader.read(UInt8.self) != 0)))
            case .milliseconds(let count, let unit):
                let microseconds = Int64(truncatingIfNeeded: try number(count, &reader)) * unit
                fields.append(Field(name, milliseconds(microseconds)))
            case .choice(let words):
                let value = try reader.read(UInt8.self)
                fields.append(Field(name, .text(words[value] ?? hex(UInt64(value), byteCount: 1))))
            case .bits(let words):
                last = UInt64(try reader.read(UInt8.self))
                let set = (0..<8).filter { last >> $0 & 1 == 1 }
                fields.append(
                    Field(name, .list(set.map { .text($0 < words.count ? words[$0] : "bit \($0)") })))
            case .status:
                let status = HCIStatus(rawValue: try reader.read())
                fields.append(Field(name, .text(status.specificationName)))
            case .address:
                fields.append(Field(name, .text(BluetoothAddressText.text(try reader.readAddressValue()))))
            case .opcode:
                let opcode = HCIOpcode(rawValue: try reader.read())
                fields.append(Field(name, .text("\(opcode)")))
            case .uuid(let count):
                fields.append(Field(name, .text(try reader.readUUID(byteCount: count).shortText)))
            case .uuidRest:
                let count = reader.remaining
                fields.append(Field(name, .text(try reader.readUUID(byteCount: count == 16 ? 16 : 2).shortText)))
            case .bytes(let count):
                fields.append(Field(name, .bytes(try reader.readBytes(count))))
            case .key:
                fields.append(Field(name, .bytes(try reader.readBytes(16)), isSecret: true))
            case .rest:
                fields.append(Field(name, .bytes(reader.readRest())))
            case .advertising(let padding):
                let count = Int(try reader.read(UInt8.self))
                fields.append(Field("data_length", .number(Int64(count))))
                let data = try reader.readBytes(count)
                try reader.skip(max(0, padding - count))
                fields.append(Field(name, advertisingData(data)))
            case .array(let elements):
                var list: [Value] = []
                let count = try reader.read(UInt8.self)
                for _ in 0..<count {
                    var group: [Field] = []
                    try read(elements, &reader, &group)
                    list.append(.group(group))
                }
                fields.append(Field(name, .list(list)))
            case .perBit(let elements):
                var list: [Value] = []
                for _ in 0..<last.nonzeroBitCount {
                    var group: [Field] = []
                    try read(elements, &reader, &group)
                    list.append(.group(group))
                }
                fields.append(Field(name, .list(list)))
            }
        }
    }

    private static func number(_ byteCount: Int, _ reader: inout ByteReader) throws(DecodeError) -> UInt64 {
        try reader.readBuffer(byteCount).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    private static func milliseconds(_ microseconds: Int64) -> Value {
        microseconds % 1_000 == 0 ? .number(microseconds / 1_000) : .fraction(Double(microseconds) / 1_000)
    }
}

extension BluetoothUUID {
    /// Assigned numbers in their 16 bits, others in full.
    var shortText: String {
        shortForm.map { PacketDescription.hex(UInt64($0), byteCount: 2) } ?? description
    }
}
