// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshTransportAPI
internal import MeshWire

/// What `meshhost decode` makes of bytes.
struct Decoding {
    private let subject: HostCommand.DecodeSubject
    /// What packets are tried with; nil where there is no cryptography.
    private let channels: [ChannelKey]?
    private let question: NodeQuestion?
    private let showsSecrets: Bool

    init(_ wishes: HostCommand.DecodeOptions, _ subject: HostCommand.DecodeSubject) throws(UsageError) {
        self.subject = subject
        showsSecrets = wishes.showsSecrets
        question = try wishes.request.map { text throws(UsageError) in try NodeQuestion(text) }
        channels = subject == .lpp ? [] : try Self.channels(wishes.channels)
    }

    /// Public and those that the words of the command line name.
    private static func channels(_ words: [String]) throws(UsageError) -> [ChannelKey]? {
        do {
            var channels = [try ChannelKey.public()]
            for word in words { channels.append(try channel(word)) }
            return channels
        } catch let error as UsageError {
            throw error
        } catch {
            if !words.isEmpty { throw UsageError(message: "packets cannot be decrypted: \(error)") }
            Terminal.complain("meshhost: packets are not decrypted: \(error)")
            return nil
        }
    }

    private static func channel(_ word: String) throws -> ChannelKey {
        if word.hasPrefix("#"), word.count > 1 { return try .hashtag(word) }
        let parts = word.split(separator: "=", maxSplits: 1)
        guard parts.count == 2, let secret = Data(hexadecimal: String(parts[1])),
            secret.count == 16 || secret.count == 32
        else {
            throw UsageError(
                message: "--channel \(word): say '#NAME', or NAME=KEY with a key of 32 or 64 hexadecimal digits")
        }
        return try ChannelKey(name: String(parts[0]), secret: secret)
    }

    static func bytes(of hex: String) throws(UsageError) -> Data {
        guard let bytes = Data(hexadecimal: hex) else {
            let digits = hex.dropFirst(hex.hasPrefix("0x") ? 2 : 0).filter { $0 != " " && $0 != ":" }
            let text =
                digits.first { $0.hexDigitValue == nil }.map { "\"\($0)\" is no hexadecimal digit" }
                ?? "\(digits.count) hexadecimal digits are no whole bytes"
            throw UsageError(message: "\(text); write two of 0-9 and a-f for each byte")
        }
        return bytes
    }

    /// The values, and the member of the JSON document they go under.
    func values(of hex: String) throws(UsageError) -> (member: String, [JSONValue]) {
        let bytes = try Self.bytes(of: hex)
        return switch subject {
        case .companion: ("frames", frames(in: bytes))
        case .packet: ("packets", [MeshPacket.json(decoding: bytes, channels: channels)])
        case .lpp: ("readings", CayenneLPP.json(bytes).arrayValue ?? [])
        }
    }

    /// Frames in their framing (`<` or `>`), or one bare frame.
    private func frames(in bytes: Data) -> [JSONValue] {
        switch bytes.first {
        case CompanionFraming.Marker.fromClient.rawValue?: framed(bytes, .fromClient, .fromClient)
        case CompanionFraming.Marker.fromRadio.rawValue?: framed(bytes, .fromRadio, .fromRadio)
        default: [bare(bytes)]
        }
    }

    /// Without a marker the direction is a guess: a code from 0x80 up comes from the radio, and so does one that can only
    /// be a reply by its length. Both readings are told.
    private func bare(_ bytes: Data) -> JSONValue {
        let radio = frame(bytes, .fromRadio)
        if bytes.first.map(PushCode.isPush) ?? true { return radio }
        return ["as_command": frame(bytes, .fromClient), "as_reply": radio]
    }

    private func framed(
        _ bytes: Data, _ marker: CompanionFraming.Marker, _ direction: FrameDirection
    ) -> [JSONValue] {
        var decoder = CompanionFrameDecoder(.init(marker: marker))
        var frames: [JSONValue] = []
        bytes.withUnsafeBytes { buffer in
            decoder.bytesReceived(RawSpan(_unsafeBytes: buffer), now: .zero) { payload in
                frames.append(frame(payload.withUnsafeBytes { Data($0) }, direction))
            }
        }
        let skipped = decoder.counters.skippedBytes
        decoder.streamEnded()
        let cut = decoder.counters.skippedBytes - skipped
        if skipped > 0 { frames.append(["error": .string("\(skipped) bytes belong to no frame")]) }
        if cut > 0 { frames.append(["error": .string("the last frame is cut: \(cut) bytes of it are there")]) }
        return frames
    }

    private func frame(_ bytes: Data, _ direction: FrameDirection) -> JSONValue {
        let value = CompanionFrame.json(bytes, direction, channels: channels, showsSecrets: showsSecrets)
        guard var object = value.objectValue else { return value }
        object["direction"] = .string(direction.rawValue)
        if let question, direction == .fromRadio,
            case .binaryResponse(let response)? = try? CompanionPush(decoding: bytes)
        {
            object["answer"] = question.json(of: response.payload)
        }
        return .object(object)
    }
}

/// What a node was asked, without which its answer has no meaning.
private enum NodeQuestion {
    case binary(BinaryRequest)
    case anonymous(AnonymousRequest)

    /// From the frame of a SEND_BINARY_REQ or SEND_ANON_REQ in hexadecimal.
    init(_ hex: String) throws(UsageError) {
        guard let bytes = Data(hexadecimal: hex), let question = try? Self.read(bytes) else {
            throw UsageError(
                message: "--request \(hex): not the frame of a SEND_BINARY_REQ (32...) or SEND_ANON_REQ (39...)")
        }
        self = question
    }

    private static func read(_ frame: Data) throws(DecodeError) -> NodeQuestion? {
        switch try CompanionCommand(decoding: frame) {
        case .sendBinaryRequest(let fields): .binary(try BinaryRequest(decoding: fields.request))
        case .sendAnonymousRequest(let fields): .anonymous(try AnonymousRequest(decoding: fields.request))
        default: nil
        }
    }

    func json(of payload: Data) -> JSONValue {
        do throws(DecodeError) {
            return switch self {
            case .binary(let request): try BinaryAnswer(decoding: payload, to: request).json
            case .anonymous(let request): try AnonymousAnswer(decoding: payload, to: request).json
            }
        } catch {
            return ["error": .string("\(error)")]
        }
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
