// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// L2CAP frames of a link, described, with what is inside (Core Specification 5.4, Vol 3 Part A §3.1, §4).
enum L2CAPDescriber {
    private static let channels: [UInt16: String] = [
        L2CAPFrame.attributeChannel: "Attribute Protocol", L2CAPFrame.signallingChannel: "LE Signaling",
        L2CAPFrame.securityChannel: "Security Manager",
    ]

    /// A whole frame that was put together from pieces. Offsets count from its header.
    static func describe(_ frame: L2CAPFrame) -> PacketDescription {
        PacketDescription(.l2cap, "", of: frame.bytes) { (reader, description) throws(DecodeError) in
            try read(length: try reader.read(), channel: try reader.read(), &reader, into: &description)
        }
    }

    /// What follows the header.
    static func read(
        length: UInt16, channel: UInt16, _ reader: inout ByteReader, into description: inout PacketDescription
    ) throws(DecodeError) {
        description.name = channels[channel] ?? "unknown"
        description.fields += [
            .init("pdu_length", .number(Int64(length))),
            .init("channel_id", .text(PacketDescription.hex(UInt64(channel), byteCount: 2))),
        ]
        if reader.remaining < length {
            throw DecodeError(.truncated(missing: Int(length) - reader.remaining), offset: reader.offset)
        }
        if reader.remaining > length {
            throw DecodeError(.trailing(count: reader.remaining - Int(length)), offset: reader.offset + Int(length))
        }
        switch channel {
        case L2CAPFrame.attributeChannel:
            description.readPayload(.att, &reader) { (reader, inner) throws(DecodeError) in
                try ATTPacketDescriber.read(&reader, into: &inner)
            }
        case L2CAPFrame.securityChannel:
            description.readPayload(.smp, &reader) { (reader, inner) throws(DecodeError) in
                try SMPPacketDescriber.read(&reader, into: &inner)
            }
        case L2CAPFrame.signallingChannel:
            description.readPayload(.signalling, &reader) { (reader, inner) throws(DecodeError) in
                try readSignalling(&reader, into: &inner)
            }
        default: description.fields.append(.init("information_payload", .bytes(reader.readRest())))
        }
    }

    private static func readSignalling(
        _ reader: inout ByteReader, into description: inout PacketDescription
    ) throws(DecodeError) {
        let code = try reader.read(UInt8.self)
        let layout = signals[code]
        description.name = layout?.name ?? "unknown"
        if layout == nil {
            description.fields.append(.init("code", .text(PacketDescription.hex(UInt64(code), byteCount: 1))))
        }
        try description.read([.number("identifier"), .number("data_length", 2)], &reader)
        if let layout {
            try description.read(layout.fields, &reader)
            try reader.expectEnd()
        } else {
            description.fields.append(.init("data", .bytes(reader.readRest())))
        }
    }

    private static let signals: [UInt8: (name: String, fields: [FieldLayout])] = [
        0x01: (
            "Command Reject Response",
            [
                FieldLayout("reason", .number(2)), FieldLayout("reason_data", .rest),
            ]
        ),
        0x06: ("Disconnection Request", [.hex("destination_cid", 2), .hex("source_cid", 2)]),
        0x07: ("Disconnection Response", [.hex("destination_cid", 2), .hex("source_cid", 2)]),
        0x12: (
            "Connection Parameter Update Request",
            [
                .interval("interval_min_ms"), .interval("interval_max_ms"), .number("latency", 2),
                .centiseconds("timeout_ms"),
            ]
        ),
        0x13: ("Connection Parameter Update Response", [.number("result", 2)]),
        0x14: (
            "LE Credit Based Connection Request",
            [
                .hex("spsm", 2), .hex("source_cid", 2), .number("mtu", 2), .number("mps", 2),
                .number("initial_credits", 2),
            ]
        ),
        0x15: (
            "LE Credit Based Connection Response",
            [
                .hex("destination_cid", 2), .number("mtu", 2), .number("mps", 2), .number("initial_credits", 2),
                .number("result", 2),
            ]
        ),
        0x16: ("Flow Control Credit Indication", [.hex("cid", 2), .number("credits", 2)]),
    ]
}

extension PacketDescription {
    /// What is inside; an error of it is told there.
    mutating func readPayload(
        _ layer: Layer, _ reader: inout ByteReader,
        _ body: (inout ByteReader, inout PacketDescription) throws(DecodeError) -> Void
    ) {
        var inner = PacketDescription(layer, "empty")
        do throws(DecodeError) {
            try body(&reader, &inner)
        } catch {
            inner.error = error
        }
        payload.append(inner)
    }
}
