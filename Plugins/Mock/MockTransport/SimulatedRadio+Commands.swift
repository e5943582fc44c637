// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshWire

extension SimulatedRadio {
    /// MAX_GROUP_CHANNELS of most builds.
    static let channelSlots: UInt8 = 40

    /// The frames that answer a command. Unknown or too short: unsupported, as in firmware.
    mutating func answers(to command: [UInt8], now: Duration) -> [[UInt8]] {
        do {
            return try ByteReader.decode(command) { (reader) throws(DecodeError) in
                try answers(reading: &reader, now: now)
            }
        } catch {
            return [SimulatedFrame.error(.unsupported)]
        }
    }

    private mutating func answers(reading reader: inout ByteReader, now: Duration) throws(DecodeError) -> [[UInt8]] {
        let code: UInt8 = try reader.read()
        switch code {
        case 1:  // APP_START: at least 8 bytes in all
            try reader.skip(7)
            return [SimulatedFrame.selfInfo(self)]
        case 2: return try sendText(&reader, now: now)
        case 3: return try sendChannelText(&reader, now: now)
        case 4: return try listContacts(&reader)
        case 5: return [SimulatedFrame.number(0x09, clock(now))]
        case 6:
            let time: UInt32 = try reader.read()
            guard time >= clock(now) else { return [SimulatedFrame.error(.illegalArgument)] }
            clockAtBoot = time &- UInt32(clamping: (now - bootTime).components.seconds)
            return [SimulatedFrame.ok]
        case 7:  // SELF_ADVERT
            packets.sent += 1
            return [SimulatedFrame.ok]
        case 8: return try setName(&reader)
        case 9: return try storeContact(&reader, now: now)
        case 10:
            return [messages.isEmpty ? SimulatedFrame.noMoreMessages : messages.removeFirst().frame]
        case 11: return try setRadio(&reader)
        case 12:
            let power: Int8 = try reader.read()
            guard (-9...22).contains(power) else { return [SimulatedFrame.error(.illegalArgument)] }
            transmitPower = power
            return [SimulatedFrame.ok]
        case 13: return try changeContact(&reader) { $0.pathByte = 0xFF }
        case 14: return try setPosition(&reader)
        case 15: return try removeContact(&reader)
        case 16: return try changeContact(&reader) { _ in }  // SHARE_CONTACT
        case 19:
            return try restart(&reader, word: "reboot", now: now)
        case 20: return [SimulatedFrame.battery(settings.batteryMillivolts)]
        case 21:
            tuning = (try reader.read(), try reader.read())
            return [SimulatedFrame.ok]
        case 22:
            appVersion = try reader.read()
            return [SimulatedFrame.deviceInfo(self)]
        case 23: return [[0x0F]]  // EXPORT_PRIVATE_KEY is compiled out
        case 26, 27, 39, 50: return try request(code, &reader, now: now)
        case 29: return [SimulatedFrame.ok]  // LOGOUT
        case 30:
            let contact = try contact(&reader)
            return [contact?.frame(code: 0x03) ?? SimulatedFrame.error(.notFound)]
        case 31: return try getChannel(&reader)
        case 32: return try setChannel(&reader)
        case 37:
            let pin: UInt32 = try reader.read()
            guard pin == 0 || (100_000...999_999).contains(pin) else { return [SimulatedFrame.error(.illegalArgument)] }
            devicePIN = pin
            return [SimulatedFrame.ok]
        case 38: return try setOtherParameters(&reader)
        case 40: return [[0x15]]  // no custom variables
        case 42:
            try reader.skip(1)
            return [advertPath(of: try contact(&reader))]
        case 43: return [SimulatedFrame.number(0x17, tuning.rxDelay) + SimulatedFrame.number(0, tuning.airtime)[1...]]
        case 54: return [SimulatedFrame.ok]  // SET_FLOOD_SCOPE
        case 56: return try statistics(&reader, now: now)
        case 58:
            autoAdd = [try reader.read(), reader.remaining > 0 ? try reader.read() : autoAdd[1]]
            return [SimulatedFrame.ok]
        case 59: return [[0x19] + autoAdd]
        case 60: return [[0x1A]]  // no frequency is open to repeaters here
        case 61:
            try reader.skip(1)
            let mode: UInt8 = try reader.read()
            guard mode <= 2 else { return [SimulatedFrame.error(.illegalArgument)] }
            pathHashMode = mode
            return [SimulatedFrame.ok]
        case 64: return [[0x1C]]  // no default scope
        default: return [SimulatedFrame.error(.unsupported)]
        }
    }

    private mutating func setName(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        guard reader.remaining > 0 else { throw DecodeError(.truncated(missing: 1), offset: reader.offset) }
        name = WireText.prefix(of: reader.readText(), bytes: 31)
        return [SimulatedFrame.ok]
    }

    private mutating func setPosition(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        let (north, east): (Int32, Int32) = (try reader.read(), try reader.read())
        guard (-90_000_000...90_000_000).contains(north), (-180_000_000...180_000_000).contains(east) else {
            return [SimulatedFrame.error(.illegalArgument)]
        }
        (latitude, longitude) = (north, east)
        return [SimulatedFrame.ok]
    }

    /// The limits are those of companion-protocol §1.5, SET_RADIO.
    private mutating func setRadio(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        let (kilohertz, width): (UInt32, UInt32) = (try reader.read(), try reader.read())
        let (factor, rate): (UInt8, UInt8) = (try reader.read(), try reader.read())
        guard (150_000...2_500_000).contains(kilohertz), (7_000...500_000).contains(width), (5...12).contains(factor),
            (5...8).contains(rate)
        else { return [SimulatedFrame.error(.illegalArgument)] }
        (frequency, bandwidth, spreadingFactor, codingRate) = (kilohertz, width, factor, rate)
        return [SimulatedFrame.ok]
    }

    /// manual_add, then telemetry, location policy and multiple acknowledgements as far as they are given.
    private mutating func setOtherParameters(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        otherParameters[3] = try reader.read()
        for index in [2, 1, 0] where reader.remaining > 0 { otherParameters[index] = try reader.read() }
        return [SimulatedFrame.ok]
    }

    private func getChannel(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        let index: UInt8 = try reader.read()
        guard index < Self.channelSlots else { return [SimulatedFrame.error(.notFound)] }
        return [SimulatedFrame.channelInfo(index, channels[index])]
    }

    private mutating func setChannel(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        let index: UInt8 = try reader.read()
        let name = try reader.readFixedText(32)
        let secret = try reader.readBytes(16)
        // 32-byte secrets are not supported (companion-protocol §1.5).
        try reader.expectEnd()
        guard index < Self.channelSlots else { return [SimulatedFrame.error(.notFound)] }
        channels[index] = name.isEmpty ? nil : Channel(name: name, secret: secret)
        return [SimulatedFrame.ok]
    }

    private mutating func restart(
        _ reader: inout ByteReader, word: String, now: Duration
    ) throws(DecodeError) -> [[UInt8]] {
        guard reader.readText() == word else { throw DecodeError(.invalidField("word"), offset: 1) }
        plan(.restart, at: now + settings.answerDelay)
        messages = []
        appVersion = 0
        return []
    }

    private mutating func statistics(_ reader: inout ByteReader, now: Duration) throws(DecodeError) -> [[UInt8]] {
        let kind: UInt8 = try reader.read()
        let uptime = UInt32(clamping: (now - bootTime).components.seconds)
        var writer = ByteWriter(capacity: 30)
        writer.write(UInt8(0x18))
        writer.write(kind)
        switch kind {
        case 0:
            writer.write(settings.batteryMillivolts)
            writer.write(uptime)
            writer.write(UInt16(0))
            writer.write(UInt8(0))
        case 1:
            writer.write(Int16(-112))
            writer.write(world.signalStrength())
            writer.write(world.signalToNoise())
            writer.write(packets.sent)
            writer.write(packets.received)
        case 2:
            for count in [packets.received, packets.sent, packets.sent, 0, packets.received, 0, 0] {
                writer.write(count as UInt32)
            }
        default: return [SimulatedFrame.error(.illegalArgument)]
        }
        return [writer.bytes]
    }
}
