// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshWire

/// The frames a simulated radio sends, per companion-protocol §1.6 and §1.7.
enum SimulatedFrame {
    static let ok: [UInt8] = [0x00]
    static let noMoreMessages: [UInt8] = [0x0A]
    static let messageWaiting: UInt8 = 0x83

    /// Error codes of companion-protocol §1.5.
    enum Failure: UInt8 {
        case unsupported = 1
        case notFound = 2
        case tableFull = 3
        case badState = 4
        case illegalArgument = 6
    }

    static func error(_ failure: Failure) -> [UInt8] { [0x01, failure.rawValue] }

    static func selfInfo(_ radio: borrowing SimulatedRadio) -> [UInt8] {
        var writer = ByteWriter(capacity: 96)
        writer.write(UInt8(0x05))
        writer.write(SimulatedContact.Kind.chat.rawValue)
        writer.write(radio.transmitPower)
        writer.write(UInt8(22))
        writer.write(contentsOf: radio.publicKey)
        writer.write(radio.latitude)
        writer.write(radio.longitude)
        writer.write(contentsOf: radio.otherParameters)
        writer.write(radio.frequency)
        writer.write(radio.bandwidth)
        writer.write(radio.spreadingFactor)
        writer.write(radio.codingRate)
        writer.writeText(radio.name, limit: 31)
        return writer.bytes
    }

    /// 82 bytes, protocol version 13.
    static func deviceInfo(_ radio: borrowing SimulatedRadio) -> [UInt8] {
        var writer = ByteWriter(capacity: 82)
        writer.write(UInt8(0x0D))
        writer.write(UInt8(13))
        writer.write(UInt8(SimulatedRadioSettings.maximumContacts / 2))
        writer.write(SimulatedRadio.channelSlots)
        writer.write(radio.devicePIN)
        writer.writeFixedText("14 Aug 2026", length: 12)
        writer.writeFixedText("Simulated radio", length: 40)
        writer.writeFixedText("v1.17.1-sim", length: 20)
        writer.write(UInt8(0))
        writer.write(radio.pathHashMode)
        return writer.bytes
    }

    static func sent(isFlood: Bool, tag: [UInt8], timeout: UInt32) -> [UInt8] {
        var writer = ByteWriter(capacity: 10)
        writer.write(UInt8(0x06))
        writer.write(UInt8(isFlood ? 1 : 0))
        writer.write(contentsOf: tag)
        writer.write(timeout)
        return writer.bytes
    }

    static func sendConfirmed(_ acknowledgement: [UInt8], tripTime: UInt32) -> [UInt8] {
        var writer = ByteWriter(capacity: 9)
        writer.write(UInt8(0x82))
        writer.write(contentsOf: acknowledgement)
        writer.write(tripTime)
        return writer.bytes
    }

    /// `appVersion` 3 and above get the layout with the signal-to-noise ratio.
    static func directMessage(
        from contact: SimulatedContact, type: UInt8, text: String, time: UInt32, snr: Int8, appVersion: UInt8
    ) -> [UInt8] {
        var writer = ByteWriter(capacity: 176)
        writeMessageHead(&writer, codes: (0x07, 0x10), snr, appVersion)
        writer.write(contentsOf: contact.prefix)
        writer.write(contact.pathByte == 0xFF ? 1 : contact.pathByte)
        writer.write(type)
        writer.write(time)
        writer.writeText(text, limit: 160)
        return writer.bytes
    }

    static func channelMessage(
        on channel: UInt8, text: String, pathByte: UInt8, time: UInt32, snr: Int8, appVersion: UInt8
    ) -> [UInt8] {
        var writer = ByteWriter(capacity: 176)
        writeMessageHead(&writer, codes: (0x08, 0x11), snr, appVersion)
        writer.write(channel)
        writer.write(pathByte)
        writer.write(UInt8(0))
        writer.write(time)
        writer.writeText(text, limit: 160)
        return writer.bytes
    }

    private static func writeMessageHead(
        _ writer: inout ByteWriter, codes: (plain: UInt8, withSNR: UInt8), _ snr: Int8, _ appVersion: UInt8
    ) {
        if appVersion >= 3 {
            writer.write(codes.withSNR)
            writer.write(snr)
            writer.writeZeros(2)
        } else {
            writer.write(codes.plain)
        }
    }

    static func channelInfo(_ index: UInt8, _ channel: SimulatedRadio.Channel?) -> [UInt8] {
        var writer = ByteWriter(capacity: 50)
        writer.write(UInt8(0x12))
        writer.write(index)
        writer.writeFixedText(channel?.name ?? "", length: 32)
        writer.write(contentsOf: channel?.secret ?? Array(repeating: 0, count: 16))
        return writer.bytes
    }

    static func battery(_ millivolts: UInt16) -> [UInt8] {
        var writer = ByteWriter(capacity: 11)
        writer.write(UInt8(0x0C))
        writer.write(millivolts)
        writer.write(UInt32(64))
        writer.write(UInt32(1_408))
        return writer.bytes
    }

    /// LOG_RX with a packet of other people's: group text, direct text or acknowledgement, flooded (companion-protocol
    /// §1.8, packet header). What is inside is random, as it would be without their keys.
    static func packetHeard(_ world: inout SimulatedWorld) -> [UInt8] {
        var writer = ByteWriter(capacity: 96)
        writer.write(UInt8(0x88))
        writer.write(world.signalToNoise())
        writer.write(world.signalStrength())
        let hops = world.number(0...5)
        let (header, payload): (UInt8, Int) =
            switch world.number(0...3) {
            case 0: (0x09, 4 + 16 * world.number(1...3))
            case 1: (0x0D, 4)
            default: (0x15, 3 + 16 * world.number(1...4))
            }
        writer.write(header)
        writer.write(UInt8(hops))
        writer.write(contentsOf: world.bytes(hops + payload))
        return writer.bytes
    }

    /// One 32-bit number behind `code`.
    static func number(_ code: UInt8, _ value: UInt32) -> [UInt8] {
        var writer = ByteWriter(capacity: 5)
        writer.write(code)
        writer.write(value)
        return writer.bytes
    }
}
