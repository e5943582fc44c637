// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshWire

/// Cayenne Low Power Payload: how sensors tell what they measured. Rows of a channel, a type and the type's numbers,
/// big-endian; channel 0 ends them (firmware src/helpers/sensors/LPPDataHelpers.h, `LPPReader`).
public enum CayenneLPP {
    /// One row.
    public struct Reading: Sendable, Hashable {
        /// Which of the node's sensors, 1 to 255; 1 is the node itself (firmware `TELEM_CHANNEL_SELF`).
        public var channel: UInt8
        public var kind: Kind
        /// The numbers as they are written: `value * component.scale`. None of a polyline.
        public var raw: [Int64]
        /// What a row of ``Kind/polyline`` holds.
        public var polyline: Polyline?

        /// A row from numbers as they are written, one for each of the kind's components.
        public init(channel: UInt8, kind: Kind, raw: [Int64]) {
            self.channel = channel
            self.kind = kind
            self.raw = raw
        }

        /// A row with a line on the map.
        public init(channel: UInt8, polyline: Polyline) {
            self.init(channel: channel, kind: .polyline, raw: [])
            self.polyline = polyline
        }

        /// A row from measured values, one for each of the kind's components, each rounded to what can be written. Nil
        /// for a kind without such components, another number of values, or a value that has no number.
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

        /// What was measured, in the units of ``Kind/unit``; of a polyline the places, latitude first.
        public var values: [Double] {
            polyline?.places.flatMap { [$0.latitude, $0.longitude] }
                ?? zip(raw, kind.components).map { Double($0) / $1.scale }
        }
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
        let (readings, _, error) = decodeRows(payload)
        return (readings, error)
    }

    /// The rows of a payload up to one that cannot be read, where that one begins, and why it cannot.
    static func decodeRows(_ payload: Data) -> (readings: [Reading], end: Int, error: DecodeError?) {
        var readings: [Reading] = []
        var end = 0
        do throws(DecodeError) {
            try ByteReader.decode([UInt8](payload)) { reader throws(DecodeError) in
                while let channel = reader.next, channel != 0 {
                    readings.append(try readRow(channel, &reader))
                    end = reader.offset
                }
            }
            return (readings, end, nil)
        } catch {
            return (readings, end, error)
        }
    }

    private static func readRow(_ channel: UInt8, _ reader: inout ByteReader) throws(DecodeError) -> Reading {
        let (kind, offset) = try readHead(&reader)
        if kind == .polyline { return Reading(channel: channel, polyline: try Polyline(&reader)) }
        return Reading(channel: channel, kind: kind, raw: try readNumbers(kind.components, of: kind, offset, &reader))
    }

    /// The payload of some rows.
    public static func encode(_ readings: [Reading]) throws(FieldError) -> Data {
        var writer = ByteWriter()
        for (index, reading) in readings.enumerated() {
            do throws(FieldError) {
                try write(reading, &writer)
            } catch {
                throw error.inRow(index, of: "readings")
            }
        }
        return Data(writer.bytes)
    }

    private static func write(_ reading: Reading, _ writer: inout ByteWriter) throws(FieldError) {
        if reading.channel == 0 {
            throw FieldError("channel", .invalid, advice: "0 ends the readings; write a whole number from 1 to 255")
        }
        if (reading.kind == .polyline) != (reading.polyline != nil) { throw FieldError("type", .invalid) }
        writer.write(reading.channel)
        writer.write(reading.kind.rawValue)
        if let polyline = reading.polyline {
            try polyline.write(&writer)
        } else {
            try writeNumbers(reading.raw, reading.kind.components, &writer)
        }
    }

    /// Reads a row's channel and type, and tells where the type is.
    static func readHead(_ reader: inout ByteReader) throws(DecodeError) -> (kind: Kind, offset: Int) {
        try reader.skip(1)
        let offset = reader.offset
        return (Kind(rawValue: try reader.read(UInt8.self)), offset)
    }

    /// Reads one number for each of the components of a kind. The error for one that has none points at the kind.
    static func readNumbers(
        _ components: [Component], of kind: Kind, _ offset: Int, _ reader: inout ByteReader
    ) throws(DecodeError) -> [Int64] {
        if components.isEmpty { throw DecodeError(.unknownCode(kind.rawValue), offset: offset) }
        return try readNumbers(components, &reader)
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

    /// Writes one number for each of the components.
    static func writeNumbers(
        _ numbers: [Int64], _ components: [Component], _ writer: inout ByteWriter
    ) throws(FieldError) {
        if components.isEmpty || components.count != numbers.count { throw FieldError("type", .invalid) }
        for (component, number) in zip(components, numbers) {
            guard component.range.contains(number) else {
                throw FieldError(component.name, outOf: component.range, scale: component.scale)
            }
            for byte in (0..<component.size).reversed() {
                writer.write(UInt8(truncatingIfNeeded: number >> (byte * 8)))
            }
        }
    }
}
