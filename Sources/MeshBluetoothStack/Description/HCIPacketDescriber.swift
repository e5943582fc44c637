// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// HCI packets, described, with what they carry (Core Specification 5.4, Vol 4 Part E §5.4, §7).
public enum HCIPacketDescriber {
    /// Packets one after the other as they go over H4, each with its indicator. Never fails; see ``PacketDescription``.
    /// Offsets count from the first packet's indicator.
    public static func describe(h4 bytes: [UInt8]) -> [PacketDescription] {
        var packets: [PacketDescription] = []
        var start = 0
        repeat {
            var description = PacketDescription(.other, "empty")
            let rest = Array(bytes[start...])
            do throws(DecodeError) {
                start += try ByteReader.decode(rest) { (reader) throws(DecodeError) in
                    try read(&reader, into: &description)
                }
            } catch {
                description.error = error
                start = bytes.count
            }
            // Each was read on its own.
            let before = bytes.count - rest.count
            packets.append(before == 0 ? description : description.moved(by: before))
        } while start < bytes.count
        return packets
    }

    /// One packet without H4's indicator. Offsets count from its header.
    public static func describe(_ kind: HCIPacketKind, _ packet: [UInt8]) -> PacketDescription {
        var description = describe(h4: [kind.rawValue] + packet)[0].moved(by: -1)
        let whole = kind.headerLength + (packet.count < kind.headerLength ? 0 : length(kind, packet))
        if description.error == nil, packet.count > whole {
            description.error = DecodeError(.trailing(count: packet.count - whole), offset: whole)
        }
        return description
    }

    private static func length(_ kind: HCIPacketKind, _ packet: [UInt8]) -> Int {
        packet.withUnsafeBytes { kind.payloadLength(header: $0) }
    }

    /// Returns how long the packet is, with its indicator.
    private static func read(
        _ reader: inout ByteReader, into description: inout PacketDescription
    ) throws(DecodeError) -> Int {
        let indicator = try reader.read(UInt8.self)
        guard let kind = HCIPacketKind(rawValue: indicator) else {
            description.name = "unknown"
            throw DecodeError(.unknownCode(indicator), offset: 0)
        }
        description = PacketDescription(layer(kind), "unknown")
        var probe = reader.offset
        let header = try reader.readBytes(kind.headerLength)
        let length = header.withUnsafeBytes { kind.payloadLength(header: $0) }
        probe += header.count
        let missing = length - reader.remaining
        let payload = try reader.readBytes(min(length, reader.remaining))
        var inner = description
        do throws(DecodeError) {
            try ByteReader.decode([indicator] + header + payload) { (reader) throws(DecodeError) in
                try reader.skip(1)
                switch kind {
                case .command: try readCommand(&reader, into: &inner)
                case .event: try readEvent(&reader, into: &inner)
                case .acl: try readData(&reader, into: &inner)
                case .synchronous, .isochronous:
                    try inner.read([.handle, .number("data_total_length", kind == .synchronous ? 1 : 2)], &reader)
                    inner.name = kind == .synchronous ? "Synchronous Data" : "ISO Data"
                    inner.fields.append(.init("data", .bytes(reader.readRest())))
                }
            }
        } catch {
            inner.error = error
        }
        description = inner
        // A packet that is cut is so first of all, whatever its fields would have been.
        if missing > 0 { throw DecodeError(.truncated(missing: missing), offset: probe + payload.count) }
        return 1 + header.count + length
    }

    private static func layer(_ kind: HCIPacketKind) -> PacketDescription.Layer {
        switch kind {
        case .command: .command
        case .event: .event
        case .acl: .acl
        case .synchronous, .isochronous: .other
        }
    }

    private static func readCommand(
        _ reader: inout ByteReader, into description: inout PacketDescription
    ) throws(DecodeError) {
        let opcode = HCIOpcode(rawValue: try reader.read())
        let layout = HCILayouts.commands[opcode.rawValue]
        description.name = layout?.name ?? "unknown"
        description.fields.append(.init("opcode", .text("\(opcode)")))
        try description.read([.number("parameter_total_length")], &reader)
        if let layout {
            try description.read(layout.parameters, &reader)
            description.readAdditional(&reader)
        } else {
            description.fields.append(.init("parameters", .bytes(reader.readRest())))
        }
    }

    private static func readEvent(
        _ reader: inout ByteReader, into description: inout PacketDescription
    ) throws(DecodeError) {
        let code = try reader.read(UInt8.self)
        description.fields.append(.init("event_code", .text(PacketDescription.hex(UInt64(code), byteCount: 1))))
        try description.read([.number("parameter_total_length")], &reader)
        var layout = HCILayouts.events[code]
        if code == 0x3E {
            let subevent = try reader.read(UInt8.self)
            description.fields.append(
                .init("subevent_code", .text(PacketDescription.hex(UInt64(subevent), byteCount: 1))))
            layout = HCILayouts.leEvents[subevent]
        }
        guard let layout else {
            description.fields.append(.init("parameters", .bytes(reader.readRest())))
            return
        }
        description.name = layout.name
        try description.read(layout.parameters, &reader)
        if code == 0x0E { try readReturnParameters(&reader, into: &description) }
        if code == 0x0F { try readOpcode(&reader, into: &description) }
        description.readAdditional(&reader)
    }

    /// The command's number and its name. Nil for one without a layout.
    @discardableResult
    private static func readOpcode(
        _ reader: inout ByteReader, into description: inout PacketDescription
    ) throws(DecodeError) -> HCILayouts.Command? {
        let opcode = HCIOpcode(rawValue: try reader.read())
        let layout = HCILayouts.commands[opcode.rawValue]
        description.fields.append(.init("command_opcode", .text("\(opcode)")))
        // With this one only the number of commands is told that may be sent.
        let name = opcode == .none ? "none" : layout?.name ?? "unknown"
        description.fields.append(.init("command", .text(name)))
        return layout
    }

    private static func readReturnParameters(
        _ reader: inout ByteReader, into description: inout PacketDescription
    ) throws(DecodeError) {
        guard let layout = try readOpcode(&reader, into: &description) else {
            if reader.remaining > 0 {
                description.fields.append(.init("return_parameters", .bytes(reader.readRest())))
            }
            return
        }
        try description.read([.status], &reader)
        // After a failure the rest has no meaning, and need not be there (§7.7.14).
        let hasFailed = description.fields.last?.value != .text(HCIStatus.success.specificationName)
        if hasFailed, reader.remaining == 0 { return }
        try description.read(layout.result, &reader)
    }

    private static func readData(
        _ reader: inout ByteReader, into description: inout PacketDescription
    ) throws(DecodeError) {
        let word = try reader.read(UInt16.self)
        description.name = "ACL Data"
        let boundary = ACLPacket.Boundary(rawValue: UInt8(word >> 12 & 0b11)) ?? .complete
        let words: [ACLPacket.Boundary: String] = [
            .firstFromHost: "first-non-flushable", .continuation: "continuing", .firstFromController: "first-flushable",
            .complete: "complete",
        ]
        description.fields += [
            .init("connection_handle", .text("\(ConnectionHandle(word))")),
            .init("packet_boundary_flag", .text(words[boundary] ?? "")),
            .init("broadcast_flag", .number(Int64(word >> 14))),
        ]
        try description.read([.number("data_total_length", 2)], &reader)
        let head = boundary.isFirst && reader.remaining >= 4 ? try reader.readBytes(4) : []
        // The rest of the frame is in other packets, or the beginning was.
        guard head.count == 4, reader.remaining >= Int(head[0]) | Int(head[1]) << 8 else {
            description.fields.append(.init("data", .bytes(head + reader.readRest())))
            return
        }
        description.readPayload(.l2cap, &reader) { (reader, inner) throws(DecodeError) in
            try L2CAPDescriber.read(
                length: UInt16(head[0]) | UInt16(head[1]) << 8, channel: UInt16(head[2]) | UInt16(head[3]) << 8,
                &reader, into: &inner)
        }
    }
}

extension PacketDescription {
    /// With offsets that count from elsewhere.
    func moved(by distance: Int) -> PacketDescription {
        var result = self
        if let error { result.error = DecodeError(error.reason, offset: max(0, error.offset + distance)) }
        result.payload = payload.map { $0.moved(by: distance) }
        return result
    }
}
