// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
internal import MeshWire

extension BinaryAnswer {
    /// The bytes for ``BinaryResponse/payload``, without zeros that fill the last cipher block. What would be read as
    /// something else is refused: rows of nobody, neighbours with keys of several lengths, names with a line break.
    public func encoded() throws(FieldError) -> Data {
        var writer = ByteWriter()
        switch self {
        case .status(let status): return try WireFieldWriter.encode(status)
        case .telemetry(let readings): return try CayenneLPP.encode(readings)
        case .unknown(let bytes): return bytes
        case .minMaxAverage(let clock, let rows):
            writer.write(clock)
            for row in rows {
                if row.channel == 0 { throw FieldError("channel", .invalid) }
                writer.write(row.channel)
                writer.write(row.kind.rawValue)
                for numbers in [row.minimum, row.maximum, row.average] {
                    try CayenneLPP.writeNumbers(numbers, row.kind.rangeComponents, &writer)
                }
            }
        case .accessList(let rows):
            for row in rows {
                if row.node == .zero { throw FieldError("node", .invalid) }
                writer.write(contentsOf: row.node.data)
                writer.write(row.permissions)
            }
        case .neighbours(let total, let rows):
            guard let count = UInt16(exactly: rows.count) else {
                throw FieldError("neighbours", .tooLong(limit: 65_535))
            }
            writer.write(total)
            writer.write(count)
            for row in rows {
                let length = rows[0].keyPrefix.count
                if row.keyPrefix.count != length { throw FieldError("node", .wrongLength(expected: length)) }
                if length > PublicKey.length { throw FieldError("node", .tooLong(limit: PublicKey.length)) }
                writer.write(contentsOf: row.keyPrefix)
                writer.write(row.secondsAgo)
                writer.write(row.signalToNoise.quarters)
            }
        case .owner(let info):
            try writer.writeLine("firmware", info.firmware)
            try writer.writeLine("node_name", info.nodeName)
            try writer.writeText("owner", info.owner)
        }
        return Data(writer.bytes)
    }
}

extension AnonymousAnswer {
    /// The bytes for ``BinaryResponse/payload``, without zeros that fill the last cipher block.
    public func encoded() throws(FieldError) -> Data {
        var writer = ByteWriter()
        switch self {
        case .regions(let clock, let names):
            writer.write(clock)
            try writer.writeText("regions", names)
        case .owner(let clock, let nodeName, let owner):
            writer.write(clock)
            try writer.writeLine("node_name", nodeName)
            try writer.writeText("owner", owner)
        case .basic(let clock, let features):
            writer.write(clock)
            writer.write(features)
        case .unknown(let bytes): return bytes
        }
        return Data(writer.bytes)
    }
}

extension ByteWriter {
    /// Text up to the end of the answer.
    fileprivate mutating func writeText(_ name: String, _ text: String) throws(FieldError) {
        if text.utf8.contains(0) { throw FieldError(name, .holdsNUL) }
        writeText(text)
    }

    /// Text up to a line break.
    fileprivate mutating func writeLine(_ name: String, _ text: String) throws(FieldError) {
        if text.utf8.contains(UInt8(ascii: "\n")) { throw FieldError(name, .invalid) }
        try writeText(name, text)
        write(UInt8(ascii: "\n"))
    }
}
