// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshWire

extension SimulatedRadio {
    /// What a direct message of some length takes to be acknowledged: a made-up but steady figure.
    private static let tripTime: ClosedRange<Int> = 300...1_800

    // MARK: Sending

    mutating func sendText(_ reader: inout ByteReader, now: Duration) throws(DecodeError) -> [[UInt8]] {
        let type: UInt8 = try reader.read()
        try reader.skip(5)  // attempt, time
        let prefix = try reader.readBytes(6)
        guard reader.remaining > 0 else { throw DecodeError(.truncated(missing: 1), offset: reader.offset) }
        let text = reader.readText()
        guard let contact = contacts.first(where: { $0.prefix == prefix }) else {
            return [SimulatedFrame.error(.notFound)]
        }
        guard type <= 1 else { return [SimulatedFrame.error(.unsupported)] }
        packets.sent += 1
        let isFlood = contact.pathByte == 0xFF
        let timeout = UInt32(isFlood ? 6_000 : 2_500 + 1_000 * Int(contact.pathByte & 0x3F))
        let tripTime = UInt32(world.number(Self.tripTime))
        let answerTime = now + settings.answerDelay + .milliseconds(Int(tripTime))
        if type == 1 {
            // A command line has no acknowledgement; its output comes back as a message of the same type.
            plan(.directMessage(from: prefix, type: 1, text: "> v1.17.1-sim (\(text))"), at: answerTime)
            return [SimulatedFrame.sent(isFlood: isFlood, tag: [0, 0, 0, 0], timeout: timeout)]
        }
        let acknowledgement = world.bytes(4)
        plan(.delivered(acknowledgement: acknowledgement, tripTime: tripTime), at: answerTime)
        if settings.reply, contact.kind == .chat {
            let thinking = Duration.milliseconds(world.number(1_500...4_000))
            plan(
                .directMessage(from: prefix, type: 0, text: world.answer(to: text)), at: answerTime + thinking)
        }
        return [SimulatedFrame.sent(isFlood: isFlood, tag: acknowledgement, timeout: timeout)]
    }

    mutating func sendChannelText(_ reader: inout ByteReader, now: Duration) throws(DecodeError) -> [[UInt8]] {
        let (type, channel): (UInt8, UInt8) = (try reader.read(), try reader.read())
        try reader.skip(4)
        guard type == 0 else { return [SimulatedFrame.error(.unsupported)] }
        guard channels[channel] != nil else { return [SimulatedFrame.error(.notFound)] }
        packets.sent += 1
        let text = reader.readText()
        let people = contacts.filter { $0.kind == .chat }
        if settings.reply, !people.isEmpty {
            let person = people[world.number(0...people.count - 1)]
            plan(
                .channelMessage(channel: channel, text: "\(person.name): \(world.answer(to: text))"),
                at: now + .milliseconds(world.number(2_000...5_000)))
        }
        return [SimulatedFrame.ok]
    }

    // MARK: Receiving

    mutating func directMessageArrived(from prefix: [UInt8], type: UInt8, text: String, now: Duration) -> [Output] {
        guard let contact = contacts.first(where: { $0.prefix == prefix }) else { return [] }
        let frame = SimulatedFrame.directMessage(
            from: contact, type: type, text: text, time: clock(now), snr: world.signalToNoise(), appVersion: appVersion)
        return enqueue(QueuedMessage(frame: frame, isChannel: false))
    }

    mutating func channelMessageArrived(on channel: UInt8, text: String, now: Duration) -> [Output] {
        let frame = SimulatedFrame.channelMessage(
            on: channel, text: text, pathByte: UInt8(world.number(0...4)), time: clock(now),
            snr: world.signalToNoise(), appVersion: appVersion)
        return enqueue(QueuedMessage(frame: frame, isChannel: true))
    }

    /// One message nobody asked for, from one of the people it knows: to this radio or on a channel.
    mutating func someoneTalks(now: Duration) -> [Output] {
        let people = contacts.filter { $0.kind == .chat }
        guard !people.isEmpty else { return [] }
        let person = people[world.number(0...people.count - 1)]
        let text = world.smallTalk()
        let open = channels.keys.sorted()
        if open.isEmpty || world.chance(oneIn: 2) {
            return directMessageArrived(from: person.prefix, type: 0, text: text, now: now)
        }
        let channel = open[world.number(0...open.count - 1)]
        return channelMessageArrived(on: channel, text: "\(person.name): \(text)", now: now)
    }

    // MARK: Requests

    /// SEND_LOGIN (26), SEND_STATUS_REQ (27), SEND_TELEMETRY_REQ (39), SEND_BINARY_REQ (50): an answer with a tag, then a
    /// push from the node asked.
    mutating func request(_ code: UInt8, _ reader: inout ByteReader, now: Duration) throws(DecodeError) -> [[UInt8]] {
        if code == 39 {
            try reader.skip(3)
            if reader.remaining == 0 { return [telemetry(of: Array(publicKey.prefix(6)))] }
        }
        guard let contact = try contact(&reader) else { return [SimulatedFrame.error(.notFound)] }
        packets.sent += 1
        // A login's tag is the start of the key (companion-protocol §1.8).
        let tag = code == 26 ? Array(contact.publicKey.prefix(4)) : world.bytes(4)
        let answer: [UInt8]?
        switch code {
        case 26:
            let clock = SimulatedFrame.number(0, clock(now))[1...]
            answer = [0x85, 0] + contact.prefix + clock + [0, 2]
        case 27: answer = status(of: contact, now: now)
        case 39: answer = telemetry(of: contact.prefix)
        default:
            // Telemetry (3) is answered; for the rest the node keeps silent, as real ones do.
            answer = reader.next == 3 ? [0x8C, 0] + tag + cayenneVoltage : nil
        }
        if let answer {
            plan(.push(answer), at: now + settings.answerDelay + .milliseconds(world.number(Self.tripTime)))
        }
        return [SimulatedFrame.sent(isFlood: contact.pathByte == 0xFF, tag: tag, timeout: 6_000)]
    }

    private func telemetry(of prefix: [UInt8]) -> [UInt8] { [0x8B, 0] + prefix + cayenneVoltage }

    /// Channel 1, voltage in hundredths, big-endian (Cayenne LPP type 116).
    private var cayenneVoltage: [UInt8] {
        let hundredths = settings.batteryMillivolts / 10
        return [1, 116, UInt8(hundredths >> 8), UInt8(hundredths & 0xFF)]
    }

    /// RepeaterStats, 56 bytes (companion-protocol §1.8).
    private mutating func status(of contact: SimulatedContact, now: Duration) -> [UInt8] {
        let uptime = 86_400 + UInt32(clamping: (now - bootTime).components.seconds)
        var writer = ByteWriter(capacity: 64)
        writer.write(contentsOf: [0x87, 0] + contact.prefix)
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
}
