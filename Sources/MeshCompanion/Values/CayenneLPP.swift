// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI
public import MeshWire

/// Cayenne Low Power Payload: how sensors tell what they measured. Rows of a channel, a type and the type's numbers,
/// big-endian; channel 0 ends them (firmware src/helpers/sensors/LPPDataHelpers.h, `LPPReader`).
public enum CayenneLPP {
    /// One row.
    public struct Reading: Sendable, Hashable {
        /// Which of the node's sensors, 1 to 255; 1 is the node itself (firmware `TELEM_CHANNEL_SELF`).
        public var channel: UInt8
        public var kind: Kind
        /// The numbers as they are written: `value * component.scale`.
        public var raw: [Int64]

        /// A row from numbers as they are written, one for each of the kind's components.
        public init(channel: UInt8, kind: Kind, raw: [Int64]) {
            self.channel = channel
            self.kind = kind
            self.raw = raw
        }

        /// A row from measured values, one for each of the kind's components, each rounded to what can be written. Nil
        /// for a kind without a layout, another number of values, or a value that has no number.
        public init?(channel: UInt8, kind: Kind, values: [Double]) {
            let components = kind.components
            guard !components.isEmpty, components.count == values.count else { return nil }
            var raw: [Int64] = []
            for (component, value) in zip(components, values) {
                guard let number = Int64(exactly: (value * component.scale).rounded()) else { return nil }
                raw.append(number)
            }
            self.init(channel: channel, kind: kind, raw: raw)
        }

        /// What was measured, in the units of ``Kind/unit``.
        public var values: [Double] { zip(raw, kind.components).map { Double($0) / $1.scale } }
    }

    /// The rows of a payload. The error's reason is ``DecodeError/Reason/unknownCode(_:)`` for a type without a layout:
    /// nothing tells where the row after it begins.
    public static func decode(_ payload: Data) throws(DecodeError) -> [Reading] {
        let (readings, error) = decodeStart(payload)
        if let error { throw error }
        return readings
    }

    /// The rows of a payload up to one that cannot be read, and why.
    public static func decodeStart(_ payload: Data) -> (readings: [Reading], error: DecodeError?) {
        var readings: [Reading] = []
        do throws(DecodeError) {
            try ByteReader.decode([UInt8](payload)) { reader throws(DecodeError) in
                while let channel = reader.next, channel != 0 {
                    let kind = try readHead(&reader)
                    readings.append(
                        Reading(channel: channel, kind: kind, raw: try readNumbers(kind.components, &reader)))
                }
            }
            return (readings, nil)
        } catch {
            return (readings, error)
        }
    }

    /// The payload of some rows.
    public static func encode(_ readings: [Reading]) throws(FieldError) -> Data {
        var writer = ByteWriter()
        for reading in readings {
            let components = reading.kind.components
            if reading.channel == 0 { throw FieldError("channel", .invalid) }
            if components.isEmpty || components.count != reading.raw.count { throw FieldError("type", .invalid) }
            writer.write(reading.channel)
            writer.write(reading.kind.rawValue)
            for (component, number) in zip(components, reading.raw) {
                guard component.range.contains(number) else { throw FieldError("value", .outOfRange(component.range)) }
                for byte in (0..<component.size).reversed() {
                    writer.write(UInt8(truncatingIfNeeded: number >> (byte * 8)))
                }
            }
        }
        return Data(writer.bytes)
    }

    /// Reads a row's channel and type. The error for an unknown type points at the type.
    static func readHead(_ reader: inout ByteReader) throws(DecodeError) -> Kind {
        try reader.skip(1)
        let offset = reader.offset
        let kind = Kind(rawValue: try reader.read(UInt8.self))
        if kind.components.isEmpty { throw DecodeError(.unknownCode(kind.rawValue), offset: offset) }
        return kind
    }

    /// Reads one number for each of the components.
    static func readNumbers(
        _ components: [Component], _ reader: inout ByteReader
    ) throws(DecodeError) -> [Int64] {
        var numbers: [Int64] = []
        for component in components {
            let bits = try reader.readBuffer(component.size).reduce(Int64(0)) { $0 << 8 | Int64($1) }
            // Numbers have 1 to 4 bytes, so one beyond the range is a negative one, less 2 to the power of its bits.
            numbers.append(component.range.contains(bits) ? bits : bits - (1 << (component.size * 8)))
        }
        return numbers
    }
}

extension CayenneLPP {
    /// An array of the rows, and `{"error": …}` in the place of what cannot be read.
    public static func json(_ payload: Data) -> JSONValue {
        let (readings, error) = decodeStart(payload)
        var rows = readings.map { row($0.channel, $0.kind, ["value": value($0.kind.components, $0.raw)]) }
        if let error { rows.append(["error": .string("\(error)")]) }
        return .array(rows)
    }

    static func row(_ channel: UInt8, _ kind: Kind, _ values: [String: JSONValue]) -> JSONValue {
        var members = values
        members["channel"] = .int(Int64(channel))
        members["type"] = .string(kind.name)
        if !kind.unit.isEmpty { members["unit"] = .string(kind.unit) }
        return .object(members)
    }

    /// One number, or an object of them by the components' names.
    static func value(_ components: [Component], _ raw: [Int64]) -> JSONValue {
        let values = zip(components, raw).map { component, number -> (String, JSONValue) in
            (component.name, component.scale == 1 ? .int(number) : .double(Double(number) / component.scale))
        }
        return values.count == 1 ? values[0].1 : .object(Dictionary(values, uniquingKeysWith: { $1 }))
    }
}
