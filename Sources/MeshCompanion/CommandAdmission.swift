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
    /// Refusals are the firmware's own frames, so that apps behave: ERR_ILLEGAL_ARG for a short frame, DISABLED for a
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
        guard CommandSpec.isLengthAllowed(code, frame.count) else {
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

    /// DEVICE_QUERY for this protocol version.
    public static func deviceQuery(version: UInt8) -> Data {
        Data([CommandCode.deviceQuery.rawValue, version])
    }

    /// GET_DEVICE_TIME.
    public static let getTime = Data([CommandCode.getTime.rawValue])
}
