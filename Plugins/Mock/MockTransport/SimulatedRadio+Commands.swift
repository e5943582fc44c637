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
            abandonListing()
            return [SimulatedFrame.selfInfo(self)]
        case 2: return try sendText(&reader)
        case 3: return try sendChannelText(&reader)
        case 4: return try listContacts(&reader, now: now)
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
        case 17: return try exportContact(&reader, now: now)
        case 18: return try importContact(&reader, now: now)
        case 19: return try restart(&reader, word: "reboot", now: now)
        case 20: return [SimulatedFrame.battery(settings.batteryMillivolts)]
        case 21:
            tuning = (try reader.read(), try reader.read())
            return [SimulatedFrame.ok]
        case 22:
            appVersion = try reader.read()
            return [SimulatedFrame.deviceInfo(self)]
        case 23: return [[0x0E] + privateKey]
        case 24: return try importPrivateKey(&reader)
        case 25: return try sendRawData(&reader)
        case 26, 27, 39, 50, 52, 57: return try request(code, &reader, now: now)
        case 28:
            let key = try reader.readBytes(32)
            return [logins[key] == nil ? SimulatedFrame.error(.notFound) : SimulatedFrame.ok]
        case 29:
            logins[try reader.readBytes(32)] = nil
            return [SimulatedFrame.ok]
        case 30:
            let contact = try contact(&reader)
            return [contact?.frame(code: 0x03) ?? SimulatedFrame.error(.notFound)]
        case 31: return try getChannel(&reader)
        case 32: return try setChannel(&reader)
        case 33: return signStart()
        case 34: return try signData(&reader)
        case 35: return signFinish()
        case 36: return try sendTrace(&reader)
        case 37:
            let pin: UInt32 = try reader.read()
            guard pin == 0 || (100_000...999_999).contains(pin) else { return [SimulatedFrame.error(.illegalArgument)] }
            devicePIN = pin
            return [SimulatedFrame.ok]
        case 38: return try setOtherParameters(&reader)
        case 40: return [customVariables]
        case 41: return try setCustomVariable(&reader, now: now)
        case 42:
            try reader.skip(1)
            return [advertPath(of: try contact(&reader))]
        case 43: return [SimulatedFrame.number(0x17, tuning.rxDelay) + SimulatedFrame.number(0, tuning.airtime)[1...]]
        case 51: return try restart(&reader, word: "reset", now: now)
        case 54: return try setFloodScope(&reader)
        case 55: return try sendControlData(&reader)
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
        case 62: return try sendChannelData(&reader)
        case 63: return try setDefaultScope(&reader)
        case 64: return [[0x1C] + defaultScope]
        case 65:
            try reader.skip(2)
            packets.sent += 1
            return [SimulatedFrame.ok]
        default: return [SimulatedFrame.error(.unsupported)]
        }
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
        restart()
        plan(.restart, at: now + settings.answerDelay)
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
