// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// Attribute protocol packets, described (Core Specification 5.4, Vol 3 Part F §3.4).
public enum ATTPacketDescriber {
    /// Never fails; see ``PacketDescription``.
    public static func describe(_ packet: [UInt8]) -> PacketDescription {
        PacketDescription(.att, "empty", of: packet) { (reader, description) throws(DecodeError) in
            try read(&reader, into: &description)
        }
    }

    static func read(_ reader: inout ByteReader, into description: inout PacketDescription) throws(DecodeError) {
        let opcode = try reader.read(UInt8.self)
        guard let (name, layout) = layouts[opcode] else {
            description.name = "unknown"
            description.fields = [
                .init("opcode", .text(PacketDescription.hex(UInt64(opcode), byteCount: 1))),
                .init("parameters", .bytes(reader.readRest())),
            ]
            return
        }
        description.name = name
        try description.read(layout, &reader)
        switch ATTOpcode(rawValue: opcode) {
        case .findInformationResponse: try readInformation(&reader, into: &description)
        case .findByTypeValueResponse:
            try description.readList("handles_information_list", &reader, [.range, .range(end: "group_end_handle")])
        case .readByTypeResponse: try readData(&reader, [.attribute], into: &description)
        case .readByGroupTypeResponse:
            try readData(&reader, [.attribute, .range(end: "end_group_handle")], into: &description)
        default: try reader.expectEnd()
        }
    }

    private static func readInformation(
        _ reader: inout ByteReader, into description: inout PacketDescription
    ) throws(DecodeError) {
        let start = reader.offset
        let format = try reader.read(UInt8.self)
        description.fields.append(.init("format", .number(Int64(format))))
        guard format == 1 || format == 2 else { throw DecodeError(.invalidField("format"), offset: start) }
        try description.readList(
            "information_data", &reader, [.hex("handle", 2), FieldLayout("uuid", .uuid(format == 1 ? 2 : 16))])
    }

    /// Elements whose length is said once, with a value at the end of each.
    private static func readData(
        _ reader: inout ByteReader, _ head: [FieldLayout], into description: inout PacketDescription
    ) throws(DecodeError) {
        let start = reader.offset
        let length = Int(try reader.read(UInt8.self))
        description.fields.append(.init("length", .number(Int64(length))))
        guard length >= head.count * 2 else { throw DecodeError(.invalidField("length"), offset: start) }
        try description.readList(
            "attribute_data_list", &reader, head + [FieldLayout("attribute_value", .bytes(length - head.count * 2))])
    }

    private static let value = FieldLayout("attribute_value", .rest)

    private static let errorCodes: [UInt8: String] = [
        0x01: "Invalid Handle", 0x02: "Read Not Permitted", 0x03: "Write Not Permitted", 0x04: "Invalid PDU",
        0x05: "Insufficient Authentication", 0x06: "Request Not Supported", 0x07: "Invalid Offset",
        0x08: "Insufficient Authorization", 0x09: "Prepare Queue Full", 0x0A: "Attribute Not Found",
        0x0B: "Attribute Not Long", 0x0C: "Encryption Key Size Too Short", 0x0D: "Invalid Attribute Value Length",
        0x0E: "Unlikely Error", 0x0F: "Insufficient Encryption", 0x10: "Unsupported Group Type",
        0x11: "Insufficient Resources", 0x12: "Database Out Of Sync", 0x13: "Value Not Allowed",
        0xFC: "Write Request Rejected", 0xFD: "Client Characteristic Configuration Descriptor Improperly Configured",
        0xFE: "Procedure Already in Progress", 0xFF: "Out of Range",
    ]

    private static let layouts: [UInt8: (name: String, [FieldLayout])] = [
        0x01: (
            "Error Response",
            [
                .hex("request_opcode_in_error"), .hex("attribute_handle_in_error", 2),
                FieldLayout("error_code", .choice(errorCodes)),
            ]
        ),
        0x02: ("Exchange MTU Request", [.number("client_rx_mtu", 2)]),
        0x03: ("Exchange MTU Response", [.number("server_rx_mtu", 2)]),
        0x04: ("Find Information Request", [.start, .end]),
        0x05: ("Find Information Response", []),
        0x06: (
            "Find By Type Value Request", [.start, .end, FieldLayout("attribute_type", .uuid(2)), value]
        ),
        0x07: ("Find By Type Value Response", []),
        0x08: ("Read By Type Request", [.start, .end, FieldLayout("attribute_type", .uuidRest)]),
        0x09: ("Read By Type Response", []),
        0x0A: ("Read Request", [.attribute]),
        0x0B: ("Read Response", [value]),
        0x0C: ("Read Blob Request", [.attribute, .number("value_offset", 2)]),
        0x0D: ("Read Blob Response", [FieldLayout("part_attribute_value", .rest)]),
        0x0E: ("Read Multiple Request", [FieldLayout("set_of_handles", .rest)]),
        0x0F: ("Read Multiple Response", [FieldLayout("set_of_values", .rest)]),
        0x10: ("Read By Group Type Request", [.start, .end, FieldLayout("attribute_group_type", .uuidRest)]),
        0x11: ("Read By Group Type Response", []),
        0x12: ("Write Request", [.attribute, value]),
        0x13: ("Write Response", []),
        0x16: (
            "Prepare Write Request",
            [.attribute, .number("value_offset", 2), FieldLayout("part_attribute_value", .rest)]
        ),
        0x17: (
            "Prepare Write Response",
            [.attribute, .number("value_offset", 2), FieldLayout("part_attribute_value", .rest)]
        ),
        0x18: ("Execute Write Request", [.choice("flags", ["cancel", "write"])]),
        0x19: ("Execute Write Response", []),
        0x1B: ("Handle Value Notification", [.attribute, value]),
        0x1D: ("Handle Value Indication", [.attribute, value]),
        0x1E: ("Handle Value Confirmation", []),
        0x20: ("Read Multiple Variable Request", [FieldLayout("set_of_handles", .rest)]),
        0x21: ("Read Multiple Variable Response", [FieldLayout("length_value_tuple_list", .rest)]),
        0x23: ("Multiple Handle Value Notification", [FieldLayout("handle_length_value_tuple_list", .rest)]),
        0x52: ("Write Command", [.attribute, value]),
        0xD2: (
            "Signed Write Command", [.attribute, FieldLayout("attribute_value_and_authentication_signature", .rest)]
        ),
    ]
}

extension FieldLayout {
    fileprivate static let attribute = hex("attribute_handle", 2)
    fileprivate static let start = hex("starting_handle", 2)
    fileprivate static let end = hex("ending_handle", 2)
    fileprivate static let range = hex("found_attribute_handle", 2)

    fileprivate static func range(end name: String) -> FieldLayout { hex(name, 2) }
}

extension PacketDescription {
    /// Elements until the end.
    mutating func readList(
        _ name: String, _ reader: inout ByteReader, _ layout: [FieldLayout]
    ) throws(DecodeError) {
        var list: [Value] = []
        while reader.remaining > 0 {
            var element = PacketDescription(layer, "")
            do throws(DecodeError) {
                try element.read(layout, &reader)
            } catch {
                fields.append(Field(name, .list(list)))
                throw error
            }
            list.append(.group(element.fields))
        }
        fields.append(Field(name, .list(list)))
    }
}
