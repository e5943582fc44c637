// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import MeshWire

/// What must hold for any bytes that are said to be a companion frame: a value or an error at an offset inside of them; a
/// value that can be written reads back the same, from its bytes and from its JSON.
enum CompanionFrameCheck {
    static func run(_ input: UnsafeRawBufferPointer) {
        let frame = Data(input)
        command(frame)
        reply(frame)
        push(frame)
        nodes(frame)
        for direction in [FrameDirection.fromClient, .fromRadio] {
            guard case .object(let json) = CompanionFrame.json(frame, direction, channels: [], showsSecrets: true)
            else {
                preconditionFailure("not an object")
            }
            precondition(json["raw"] != nil, "no bytes told")
        }
        for role in ClientRole.allCases { _ = CommandAdmission.of(frame, role: role) }
    }

    private static func command(_ frame: Data) {
        let value = check(
            frame, { (bytes) throws(DecodeError) in try CompanionCommand(decoding: bytes) },
            { (value) throws(FieldError) in try value.encoded() })
        // The reserved bytes of APP_START are not in JSON.
        guard let value, (try? value.encoded()) != nil, value.code != CommandCode.appStart.rawValue else { return }
        precondition((try? CompanionCommand(json: value.json(showsSecrets: true))) == value, "other JSON")
    }

    private static func reply(_ frame: Data) {
        let value = check(
            frame, { (bytes) throws(DecodeError) in try CompanionReply(decoding: bytes) },
            { (value) throws(FieldError) in try value.encoded() })
        guard let value, (try? value.encoded()) != nil else { return }
        precondition((try? CompanionReply(json: value.json(showsSecrets: true))) == value, "other JSON")
    }

    private static func push(_ frame: Data) {
        let value = check(
            frame, { (bytes) throws(DecodeError) in try CompanionPush(decoding: bytes) },
            { (value) throws(FieldError) in try value.encoded() })
        guard let value, (try? value.encoded()) != nil else { return }
        precondition((try? CompanionPush(json: value.json(showsSecrets: true))) == value, "other JSON")
    }

    /// Requests to nodes, and answers: what frames carry to and from them.
    private static func nodes(_ bytes: Data) {
        _ = check(
            bytes, { (bytes) throws(DecodeError) in try BinaryRequest(decoding: bytes) },
            { (value) throws(FieldError) in try value.encoded() })
        _ = check(
            bytes, { (bytes) throws(DecodeError) in try AnonymousRequest(decoding: bytes) },
            { (value) throws(FieldError) in try value.encoded() })
        let length = bytes.first ?? 0
        let requests: [BinaryRequest] = [
            .status, .telemetry(inverseMask: nil), .minMaxAverage(startSecondsAgo: 0, endSecondsAgo: 0), .accessList,
            .neighbours(NeighboursRequest(prefixLength: length)), .owner, .unknown(type: 99, bytes: Data()),
        ]
        for request in requests {
            let answer = check(
                bytes, { (bytes) throws(DecodeError) in try BinaryAnswer(decoding: bytes, to: request) },
                { (value) throws(FieldError) in try value.encoded() })
            _ = answer?.json
        }
        let anonymous: [AnonymousRequest] = [
            .regions(replyPath: .zeroHops), .owner(replyPath: .zeroHops), .basic(replyPath: .zeroHops),
        ]
        for request in anonymous {
            let answer = check(
                bytes, { (bytes) throws(DecodeError) in try AnonymousAnswer(decoding: bytes, to: request) },
                { (value) throws(FieldError) in try value.encoded() })
            _ = answer?.json
        }
    }

    private static func check<Value: Equatable>(
        _ bytes: Data, _ decode: (Data) throws(DecodeError) -> Value, _ encode: (Value) throws(FieldError) -> Data
    ) -> Value? {
        let value: Value
        do throws(DecodeError) {
            value = try decode(bytes)
        } catch {
            precondition((0...bytes.count).contains(error.offset), "an offset outside of the bytes")
            return nil
        }
        if let written = try? encode(value) {
            precondition((try? decode(written)) == value, "another value")
        }
        return value
    }
}
