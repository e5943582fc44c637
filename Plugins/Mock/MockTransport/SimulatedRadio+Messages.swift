// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshWire

extension SimulatedRadio {
    /// What something takes that goes to a node and comes back, in milliseconds: a made-up but steady figure.
    mutating func tripTime() -> Int {
        let longest = Int(settings.tripTime / .milliseconds(1))
        return world.number(longest / 6...longest)
    }

    // MARK: Sending

    mutating func sendText(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        let type: UInt8 = try reader.read()
        let stamp = try reader.readBytes(5)  // attempt, time
        let prefix = try reader.readBytes(6)
        guard reader.remaining > 0 else { throw DecodeError(.truncated(missing: 1), offset: reader.offset) }
        let text = reader.readText()
        guard let contact = contacts.first(where: { $0.prefix == prefix }) else {
            return [SimulatedFrame.error(.notFound)]
        }
        guard type <= 1 else { return [SimulatedFrame.error(.unsupported)] }
        packets.sent += 1
        let isFlood = contact.pathByte == 0xFF
        let timeout = estimatedTimeout(contact)
        let tripTime = UInt32(tripTime())
        let trip = Duration.milliseconds(Int(tripTime))
        if type == 1 {
            // A command line has no acknowledgement; its output comes back as a message of the same type.
            follow(with: .directMessage(from: prefix, type: 1, text: "> v1.17.1-sim (\(text))"), in: trip)
            return [SimulatedFrame.sent(isFlood: isFlood, tag: [0, 0, 0, 0], timeout: timeout)]
        }
        // Whom it goes to is not part of it: the same text at the same time to two contacts has one code
        // (companion-protocol §1.8, ACK).
        let acknowledgement = SimulatedHash.bytes(
            4, of: stamp[1...] + [stamp[0] & 3] + Array(text.utf8) + publicKey)
        follow(with: .delivered(acknowledgement: acknowledgement, tripTime: tripTime), in: trip)
        if settings.reply, contact.kind == .chat {
            let thinking = Duration.milliseconds(world.number(1_500...4_000))
            follow(with: .directMessage(from: prefix, type: 0, text: world.answer(to: text)), in: trip + thinking)
        }
        return [SimulatedFrame.sent(isFlood: isFlood, tag: acknowledgement, timeout: timeout)]
    }

    /// What SENT tells: how long to wait, in milliseconds.
    func estimatedTimeout(_ contact: SimulatedContact) -> UInt32 {
        contact.pathByte == 0xFF ? 6_000 : 2_500 + 1_000 * UInt32(contact.pathByte & 0x3F)
    }

    mutating func sendChannelText(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        let (type, channel): (UInt8, UInt8) = (try reader.read(), try reader.read())
        try reader.skip(4)
        guard type == 0 else { return [SimulatedFrame.error(.unsupported)] }
        guard channels[channel] != nil else { return [SimulatedFrame.error(.notFound)] }
        packets.sent += 1
        let text = reader.readText()
        let people = contacts.filter { $0.kind == .chat }
        if settings.reply, !people.isEmpty {
            let person = people[world.number(0...people.count - 1)]
            follow(
                with: .channelMessage(channel: channel, text: "\(person.name): \(world.answer(to: text))"),
                in: .milliseconds(world.number(2_000...5_000)))
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
}
