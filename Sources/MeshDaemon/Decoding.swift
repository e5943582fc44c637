// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshTransportAPI
internal import MeshWire

/// What `meshhost decode` makes of bytes.
enum Decoding {
    /// The values, and the member of the JSON document they go under.
    static func values(of bytes: Data, _ subject: HostCommand.DecodeSubject) -> (member: String, [JSONValue]) {
        switch subject {
        case .frame: ("frames", frames(in: bytes))
        case .packet: ("packets", [packet(bytes)])
        case .lpp: ("readings", CayenneLPP.json(bytes).arrayValue ?? [])
        }
    }

    private static func packet(_ bytes: Data) -> JSONValue {
        do throws(DecodeError) {
            return try MeshPacket(decoding: bytes).json
        } catch {
            return ["error": .string("\(error)"), "raw": .string(CompanionFrame.hex(bytes))]
        }
    }

    /// Frames in their framing (`<` or `>`), or one bare frame.
    static func frames(in bytes: Data) -> [JSONValue] {
        switch bytes.first {
        case CompanionFraming.Marker.fromClient.rawValue?: framed(bytes, .fromClient, .fromClient)
        case CompanionFraming.Marker.fromRadio.rawValue?: framed(bytes, .fromRadio, .fromRadio)
        default: [bare(bytes)]
        }
    }

    /// Without a marker the direction is a guess: a code from 0x80 up comes from the radio, and so does one that can only
    /// be a reply by its length. Both readings are told.
    private static func bare(_ bytes: Data) -> JSONValue {
        let radio = CompanionFrame.json(bytes, .fromRadio)
        if bytes.first.map(PushCode.isPush) ?? true { return tagged(radio, .fromRadio) }
        let client = CompanionFrame.json(bytes, .fromClient)
        return ["as_command": tagged(client, .fromClient), "as_reply": tagged(radio, .fromRadio)]
    }

    private static func framed(
        _ bytes: Data, _ marker: CompanionFraming.Marker, _ direction: FrameDirection
    ) -> [JSONValue] {
        var decoder = CompanionFrameDecoder(.init(marker: marker))
        var frames: [JSONValue] = []
        bytes.withUnsafeBytes { buffer in
            decoder.bytesReceived(RawSpan(_unsafeBytes: buffer), now: .zero) { payload in
                frames.append(tagged(CompanionFrame.json(payload.withUnsafeBytes { Data($0) }, direction), direction))
            }
        }
        let skipped = decoder.counters.skippedBytes
        decoder.streamEnded()
        let cut = decoder.counters.skippedBytes - skipped
        if skipped > 0 { frames.append(["error": .string("\(skipped) bytes belong to no frame")]) }
        if cut > 0 { frames.append(["error": .string("the last frame is cut: \(cut) bytes of it are there")]) }
        return frames
    }

    private static func tagged(_ value: JSONValue, _ direction: FrameDirection) -> JSONValue {
        guard var object = value.objectValue else { return value }
        object["direction"] = .string(direction.rawValue)
        return .object(object)
    }
}

extension Data {
    /// Bytes from hexadecimal digits; blanks, colons and a leading 0x are passed over. Nil for anything else.
    init?(hexadecimal text: String) {
        let digits = text.dropFirst(text.hasPrefix("0x") ? 2 : 0).filter { $0 != " " && $0 != ":" }.map(\.hexDigitValue)
        guard digits.count % 2 == 0, !digits.contains(nil) else { return nil }
        self.init()
        for index in stride(from: 0, to: digits.count, by: 2) {
            append(UInt8((digits[index] ?? 0) * 16 + (digits[index + 1] ?? 0)))
        }
    }
}
