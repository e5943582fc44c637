// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshWire

/// What other nodes are asked. Repeaters, room servers and sensors answer; they know the firmware's passwords, `password`
/// for administrators and `hello` or none for guests, and say nothing to a wrong one, as real ones do.
extension SimulatedRadio {
    /// SEND_LOGIN (26), SEND_STATUS_REQ (27), SEND_TELEMETRY_REQ (39), SEND_BINARY_REQ (50), PATH_DISCOVERY (52) and
    /// SEND_ANON_REQ (57): an answer with a tag, then a push from the node asked, unless another request came in between.
    mutating func request(_ code: UInt8, _ reader: inout ByteReader, now: Duration) throws(DecodeError) -> [[UInt8]] {
        if code == 39 {
            try reader.skip(3)
            if reader.remaining == 0 { return [telemetry(of: Array(publicKey.prefix(6)))] }
        }
        if code == 52 { try reader.skip(1) }
        let key = try reader.readBytes(32)
        let contact = contacts.first { $0.publicKey == key }
        var type: UInt8 = 0
        if code == 50 || code == 57 { type = try reader.read() }
        // An anonymous request may go to a node that is no contact (protocol version 13): nobody answers here.
        guard contact != nil || code == 57 else { return [SimulatedFrame.error(.notFound)] }
        packets.sent += 1
        // A login's tag is the start of the key (companion-protocol §1.8).
        let tag = code == 26 ? Array(key.prefix(4)) : world.bytes(4)
        requests += 1
        pendingRequest = requests
        if let contact {
            let answer =
                switch code {
                case 26: login(to: contact, password: reader.readText(), now: now)
                case 27: isServer(contact) ? [0x87, 0] + contact.prefix + status(now: now) : nil
                case 39: telemetry(of: contact.prefix)
                case 52: path(to: contact)
                case 50:
                    isServer(contact) ? binaryAnswer(type, of: contact, &reader, now: now).map { tagged(tag, $0) } : nil
                default: isServer(contact) ? anonymousAnswer(type, of: contact, now: now).map { tagged(tag, $0) } : nil
                }
            if let answer {
                follow(with: .requestAnswered(requests, frame: answer), in: .milliseconds(tripTime()))
            }
        }
        let isFlood = contact.map { $0.pathByte == 0xFF } ?? false
        return [SimulatedFrame.sent(isFlood: isFlood, tag: tag, timeout: contact.map(estimatedTimeout) ?? 2_500)]
    }

    private func isServer(_ contact: SimulatedContact) -> Bool { contact.kind != .chat }

    private func tagged(_ tag: [UInt8], _ data: [UInt8]) -> [UInt8] { [0x8C, 0] + tag + data }

    private mutating func login(to contact: SimulatedContact, password: String, now: Duration) -> [UInt8]? {
        guard isServer(contact) else { return nil }
        let isAdmin = password == "password"
        guard isAdmin || password == "hello" || password.isEmpty else { return nil }
        logins[contact.publicKey] = isAdmin
        let access: UInt8 = isAdmin ? 3 : contact.kind == .roomServer ? 2 : 0
        let clock = SimulatedFrame.number(0, clock(now))[1...]
        return [0x85, isAdmin ? 1 : 0] + contact.prefix + clock + [access, 2]
    }

    private func telemetry(of prefix: [UInt8]) -> [UInt8] { [0x8B, 0] + prefix + cayenneVoltage }

    /// Channel 1, voltage in hundredths, big-endian (Cayenne LPP type 116).
    private var cayenneVoltage: [UInt8] {
        let hundredths = settings.batteryMillivolts / 10
        return [1, 116, UInt8(hundredths >> 8), UInt8(hundredths & 0xFF)]
    }

    /// PATH_DISCOVERY: the way there, and the same back.
    private func path(to contact: SimulatedContact) -> [UInt8] {
        let hops = contact.pathByte == 0xFF ? 0 : contact.pathByte
        let path = contact.path.prefix(Int(hops & 0x3F) * Int(hops >> 6 + 1))
        let back = hops >> 6 == 0 ? Array(path.reversed()) : Array(path)
        return [0x8D, 0] + contact.prefix + [hops] + path + [hops] + back
    }

    /// The answers to the request types of companion-protocol §1.8; nil where the node keeps silent.
    private mutating func binaryAnswer(
        _ type: UInt8, of contact: SimulatedContact, _ reader: inout ByteReader, now: Duration
    ) -> [UInt8]? {
        switch type {
        case 1: return status(now: now)
        case 3: return cayenneVoltage
        case 5:
            return logins[contact.publicKey] == true ? Array(publicKey.prefix(6)) + [3] : nil
        case 6:
            let query = reader.readRest()
            guard query.count >= 6 else { return nil }
            let (count, offset, length) = (Int(query[1]), Int(query[2]) | Int(query[3]) << 8, Int(query[5]))
            let others = contacts.filter { $0.kind == .repeater && $0.publicKey != contact.publicKey }
            let rows = others.dropFirst(offset).prefix(min(count, 130 / max(length + 5, 1)))
            var writer = ByteWriter(capacity: 160)
            writer.write(UInt16(others.count))
            writer.write(UInt16(rows.count))
            for row in rows {
                writer.write(contentsOf: row.publicKey.prefix(length))
                writer.write(clock(now) &- row.lastAdvert)
                writer.write(Int8(20))
            }
            return writer.bytes
        case 7: return Array("v1.17.1-sim\n\(contact.name)\nNobody".utf8)
        default: return nil
        }
    }

    private func anonymousAnswer(_ type: UInt8, of contact: SimulatedContact, now: Duration) -> [UInt8]? {
        let clock = Array(SimulatedFrame.number(0, clock(now))[1...])
        switch type {
        case 1: return clock + Array("*,harbour".utf8)
        case 2: return clock + Array("\(contact.name)\nNobody".utf8)
        case 3: return clock + [0]
        default: return nil
        }
    }

    /// RepeaterStats, 56 bytes (companion-protocol §1.8).
    private mutating func status(now: Duration) -> [UInt8] {
        let uptime = 86_400 + UInt32(clamping: (now - bootTime).components.seconds)
        var writer = ByteWriter(capacity: 56)
        writer.write(UInt16(4_120))
        writer.write(UInt16(0))
        writer.write(Int16(-115))
        writer.write(Int16(world.signalStrength()))
        for count in [uptime / 6, uptime / 9, uptime / 60, uptime, uptime / 12, uptime / 36, uptime / 8, uptime / 24] {
            writer.write(count)
        }
        writer.write(UInt16(0))
        writer.write(Int16(world.signalToNoise()))
        writer.write(UInt16(3))
        writer.write(UInt16(40))
        writer.write(uptime / 30)
        writer.write(UInt32(2))
        return writer.bytes
    }

    // MARK: Without a pending request

    /// SEND_TRACE_PATH: comes back if each hop is a repeater that the radio knows. More than one may be under way.
    mutating func sendTrace(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        let (tag, code) = (try reader.readBytes(4), try reader.readBytes(4))
        let flags: UInt8 = try reader.read()
        guard reader.remaining > 0 else { throw DecodeError(.truncated(missing: 1), offset: reader.offset) }
        let size = 1 << Int(flags & 3)
        let path = reader.readRest()
        guard path.count.isMultiple(of: size) else { return [SimulatedFrame.error(.illegalArgument)] }
        packets.sent += 1
        let hops = stride(from: 0, to: path.count, by: size).map { path[$0..<$0 + size] }
        let repeaters = contacts.filter { $0.kind == .repeater }
        if hops.allSatisfy({ hop in repeaters.contains { $0.publicKey.starts(with: hop) } }) {
            let signals = (0...hops.count).map { _ in UInt8(bitPattern: world.signalToNoise()) }
            follow(
                with: .push([0x89, 0, UInt8(clamping: path.count), flags] + tag + code + path + signals),
                in: .milliseconds(tripTime()))
        }
        return [SimulatedFrame.sent(isFlood: false, tag: tag, timeout: UInt32(1_000 + 500 * hops.count))]
    }

    /// SEND_CONTROL_DATA: a discovery request (0x80) is answered by the nearest nodes of the types asked for.
    mutating func sendControlData(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        let kind: UInt8 = try reader.read()
        guard kind & 0x80 != 0 else { throw DecodeError(.invalidField("control"), offset: 1) }
        packets.sent += 1
        if kind & 0xF0 == 0x80, reader.remaining >= 5 {
            let filter: UInt8 = try reader.read()
            let tag = try reader.readBytes(4)
            let near = contacts.filter { $0.type < 8 && filter >> $0.type & 1 == 1 }.prefix(2)
            for node in near {
                let key = node.publicKey.prefix(kind & 1 == 1 ? 8 : 32)
                let signal = UInt8(bitPattern: world.signalToNoise())
                let strength = UInt8(bitPattern: world.signalStrength())
                follow(
                    with: .push([0x8E, signal, strength, 0, 0x90 | node.type, signal] + tag + key),
                    in: .milliseconds(tripTime()))
            }
        }
        return [SimulatedFrame.ok]
    }

    /// SEND_RAW_DATA: a path, which must not be a flood, and at least four bytes.
    mutating func sendRawData(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        let hops: Int8 = try reader.read()
        guard hops >= 0 else { throw DecodeError(.invalidField("path"), offset: 1) }
        try reader.skip(Int(hops))
        try reader.skip(4)
        packets.sent += 1
        return [SimulatedFrame.ok]
    }

    /// SEND_CHANNEL_DATA (companion-protocol §1.5; type 0 is reserved).
    mutating func sendChannelData(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        let (channel, hops): (UInt8, UInt8) = (try reader.read(), try reader.read())
        if hops != 0xFF { try reader.skip(Int(hops & 0x3F) * Int(hops >> 6 + 1)) }
        let type: UInt16 = try reader.read()
        guard channels[channel] != nil else { return [SimulatedFrame.error(.notFound)] }
        guard type != 0 else { return [SimulatedFrame.error(.illegalArgument)] }
        packets.sent += 1
        return [SimulatedFrame.ok]
    }
}
