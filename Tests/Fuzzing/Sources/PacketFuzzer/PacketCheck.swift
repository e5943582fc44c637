// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import MeshWire

/// What must hold for any bytes that are said to be a packet: a value or an error at an offset inside of them. A value is
/// written as it was, reads back from its JSON, has a hash, and what is encrypted of it opens.
enum PacketCheck {
    /// A channel for every hash, so that each packet of a channel is tried.
    private static let channels: [ChannelKey] = {
        var channels: [UInt8: ChannelKey] = [:]
        var number = 0
        while channels.count < 256 {
            guard let channel = try? ChannelKey.hashtag("\(number)") else { preconditionFailure("no cryptography") }
            channels[channel.hash] = channel
            number += 1
        }
        return Array(channels.values)
    }()

    static func run(_ input: UnsafeRawBufferPointer) {
        let bytes = Data(input)
        plainText(bytes)
        let packet: MeshPacket
        do throws(DecodeError) {
            packet = try MeshPacket(decoding: bytes)
        } catch {
            precondition((0...bytes.count).contains(error.offset), "an offset outside of the packet")
            _ = MeshPacket.json(decoding: bytes, channels: [])
            return
        }
        precondition((try? packet.encoded()) == bytes, "other bytes")
        precondition((try? MeshPacket(json: packet.json)) == packet, "other JSON")
        contents(packet)
        do {
            let hash = try packet.hash()
            precondition(hash.count == 8)
            let code = try packet.transportCode(regionKey: channels[0].secret)
            precondition(code != 0 && code != 0xFFFF, "a reserved code")
            _ = try packet.isAdvertSignatureValid()
            if let opened = try packet.opened(with: channels) {
                precondition(opened.plainText.count.isMultiple(of: 16))
                _ = opened.json
            }
            guard case .object(let json) = try packet.json(channels: channels) else { preconditionFailure() }
            precondition((try? MeshPacket(json: .object(json))) == packet, "other JSON with what is decrypted")
        } catch {
            preconditionFailure("\(error)")
        }
    }

    private static func contents(_ packet: MeshPacket) {
        do throws(DecodeError) {
            let contents = try packet.contents()
            guard let written = try? contents.encoded() else { return }
            var again = packet
            again.payload = written
            precondition((try? again.contents()) == contents, "other contents")
        } catch {
            precondition((0...packet.payload.count).contains(error.offset), "an offset outside of the payload")
        }
    }

    /// The bytes as what a channel's packet says.
    private static func plainText(_ bytes: Data) {
        for type in [PayloadType.groupText, .groupData] {
            do throws(DecodeError) {
                let message = try GroupMessage(decoding: bytes, as: type)
                _ = message.json
                guard let written = try? message.encoded() else { preconditionFailure("cannot be written") }
                precondition((try? GroupMessage(decoding: written, as: type)) == message, "another message")
            } catch {
                precondition((0...bytes.count).contains(error.offset), "an offset outside of the plain text")
            }
        }
        guard !bytes.isEmpty else { return }
        do {
            let sealed = try PacketContents.Group(sealing: bytes, for: channels[0])
            precondition(sealed.cipherText.count < bytes.count + 16 && sealed.cipherText.count >= bytes.count)
            let zeros = Data(count: sealed.cipherText.count - bytes.count)
            let opened = try sealed.opened(with: channels[0])
            precondition(opened == bytes + zeros, "another plain text")
            let other = try sealed.opened(with: channels[1])
            precondition(other == nil, "another channel's")
        } catch {
            preconditionFailure("\(error)")
        }
    }
}
