// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// Decides whether a client's frame may go to the radio. Pure.
public enum CommandAdmission: Sendable, Hashable {
    /// Send it, and take the replies that match.
    case admitted(ReplyExpectation)
    /// Answer the client with this frame instead; nothing reaches the radio.
    case refused(Data)

    /// Judges one frame from a client with this role.
    ///
    /// Refusals are the firmware's own frames, so that apps behave: ERR_ILLEGAL_ARG for a short frame or a REBOOT
    /// without its word, DISABLED for a
    /// private key, ERR_UNSUPPORTED for what the role does not allow. A command that this table does not know passes,
    /// for an admin, and holds the lane until any reply.
    public static func of(_ frame: Data, role: ClientRole) -> CommandAdmission {
        guard let first = frame.first else { return .refused(CompanionFrame.error(.illegalArgument)) }
        guard let code = CommandCode(rawValue: first) else {
            return role >= .admin ? .admitted(.anyReply) : .refused(CompanionFrame.error(.unsupported))
        }
        let spec = CommandSpec.of(code)
        guard role >= spec.role else {
            return .refused(
                code == .exportPrivateKey
                    ? CompanionFrame.reply(.disabled) : CompanionFrame.error(.unsupported))
        }
        guard CommandSpec.isLengthAllowed(code, frame.count), CommandSpec.isBodyAllowed(code, frame) else {
            return .refused(CompanionFrame.error(.illegalArgument))
        }
        return .admitted(ReplyExpectation(to: frame, spec.answer))
    }
}

/// Short frames that the host makes itself.
public enum CompanionFrame {
    /// An error reply.
    public static func error(_ code: CompanionErrorCode) -> Data {
        Data([ReplyCode.error.rawValue, code.rawValue])
    }

    /// A reply without fields.
    public static func reply(_ code: ReplyCode) -> Data {
        Data([code.rawValue])
    }

    /// APP_START with this name (firmware `MyMesh.cpp`: seven reserved bytes, then the name).
    public static func appStart(name: String) -> Data {
        Data([CommandCode.appStart.rawValue]) + Data(repeating: 0, count: 7) + Data(name.utf8)
    }

    /// The version the host speaks to the radio: message frames with signal strength (codes 10 and 11).
    public static let hostProtocolVersion: UInt8 = 3

    /// DEVICE_QUERY for this protocol version.
    public static func deviceQuery(version: UInt8) -> Data {
        Data([CommandCode.deviceQuery.rawValue, version])
    }

    /// The newest protocol version of radios that this code knows (firmware v1.17.1, `FIRMWARE_VER_CODE`).
    public static let knownProtocolVersion: UInt8 = 13

    /// A reply as a client of this role may see it: DEVICE_INFO without the Bluetooth PIN (u32 at offset 4, firmware
    /// `MyMesh.cpp`) for anybody but the owner, and with no newer version than the host knows.
    public static func shown(_ frame: Data, to role: ClientRole) -> Data {
        guard frame.first == ReplyCode.deviceInfo.rawValue, frame.count >= 2 else { return frame }
        var frame = frame
        let start = frame.startIndex
        frame[start + 1] = min(frame[start + 1], knownProtocolVersion)
        if role < .owner, frame.count >= 8 { frame.replaceSubrange(start + 4..<start + 8, with: [0, 0, 0, 0]) }
        return frame
    }

    /// GET_DEVICE_TIME.
    public static let getTime = Data([CommandCode.getTime.rawValue])
}
