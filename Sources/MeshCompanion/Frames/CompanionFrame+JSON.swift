// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI
internal import MeshWire

/// Which way a frame went.
public enum FrameDirection: String, Sendable, Hashable {
    case fromClient = "from-client"
    case fromRadio = "from-radio"
}

extension CompanionFrame {
    /// The name of a frame whose code nobody knows.
    static let unknownName = "UNKNOWN"

    /// What a frame says, as far as this version reads it: its name, and its fields where the layout is known. Never
    /// fails: what cannot be read is told in `error`, and `raw` always has the bytes.
    ///
    /// Keys and the PIN are not among the fields.
    public static func json(_ frame: Data, _ direction: FrameDirection) -> JSONValue {
        var object: [String: JSONValue] = ["raw": .string(hex(frame)), "length": .int(Int64(frame.count))]
        guard let first = frame.first else {
            object["error"] = "an empty frame"
            return .object(object)
        }
        object["code"] = .int(Int64(first))
        do throws(DecodeError) {
            switch direction {
            case .fromClient:
                if let code = CommandCode(rawValue: first) {
                    object["name"] = .string(CommandSpec.of(code).name)
                    object["role"] = .string(CommandSpec.of(code).role.rawValue)
                }
                object.merge(try CompanionCommand(decoding: frame).json().objectValue ?? [:]) { $1 }
            case .fromRadio where PushCode.isPush(first):
                object["name"] = .string(PushCode(rawValue: first).map { "push.\($0)" } ?? unknownName)
                object.merge(try CompanionPush(decoding: frame).json().objectValue ?? [:]) { $1 }
            case .fromRadio:
                object["name"] = .string(ReplyCode(rawValue: first).map { "reply.\($0)" } ?? unknownName)
                object.merge(try CompanionReply(decoding: frame).json().objectValue ?? [:]) { $1 }
            }
        } catch {
            object["error"] = .string("\(error)")
        }
        return .object(object)
    }

    /// Lower-case hexadecimal digits.
    public static func hex(_ bytes: some Sequence<UInt8>) -> String { HexText.text(bytes) }
}
