// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// Which frames answer a command. The protocol has no request ids: the first byte, and for some replies the bytes after
/// it, are all there is to match by.
public struct ReplyExpectation: Sendable, Hashable {
    /// What a frame from the radio is to the command in flight.
    public enum Match: Sendable, Hashable {
        /// It answers the command, and more will come.
        case part
        /// It ends the command.
        case final
        /// It is a push that also ends the command.
        case finalPush
        /// It has nothing to do with the command.
        case none
    }

    private enum Form: Sendable, Hashable {
        case one([ReplyCode])
        case matching(ReplyCode, Data)
        case contacts
        case selfTelemetry
        case anyReply
        case departure
    }

    private let form: Form

    /// Any one reply: for commands this code does not know.
    public static let anyReply = ReplyExpectation(form: .anyReply)

    /// One reply with one of these codes, or an error.
    public static func one(_ codes: ReplyCode...) -> ReplyExpectation {
        ReplyExpectation(form: .one(codes))
    }

    private init(form: Form) {
        self.form = form
    }

    init(to command: Data, _ answer: CommandSpec.Answer) {
        switch answer {
        case .one(let codes): form = .one(codes)
        case .matching(let code, let count): form = .matching(code, Data(command.dropFirst().prefix(count)))
        case .contacts: form = .contacts
        case .telemetry: form = command.count == 4 ? .selfTelemetry : .one([.sent])
        case .departure: form = .departure
        }
    }

    /// Whether the radio goes away and normally says nothing.
    public var isDeparture: Bool { form == .departure }

    /// Whether it is answered by several frames, each of which shows that the radio is at work.
    public var isSeries: Bool { form == .contacts }

    /// Whether a reply with this code is among those that are known to answer the command.
    func names(_ code: ReplyCode) -> Bool {
        switch form {
        case .one(let codes): codes.contains(code)
        case .matching(let expected, _): expected == code
        case .contacts, .selfTelemetry, .anyReply, .departure: false
        }
    }

    /// Judges one frame from the radio.
    public func match(_ frame: Data) -> Match {
        guard let first = frame.first else { return .none }
        if PushCode.isPush(first) {
            let isOwnTelemetry = form == .selfTelemetry && first == PushCode.telemetryResponse.rawValue
            return isOwnTelemetry ? .finalPush : .none
        }
        // ERR carries no more than its reason, so it belongs to whatever is in flight.
        if first == ReplyCode.error.rawValue { return .final }
        switch form {
        case .one(let codes):
            return codes.contains { $0.rawValue == first } ? .final : .none
        case .matching(let code, let key):
            return code.rawValue == first && frame.dropFirst().starts(with: key) ? .final : .none
        case .contacts:
            switch ReplyCode(rawValue: first) {
            case .contactsStart, .contact: return .part
            case .endOfContacts: return .final
            default: return .none
            }
        case .anyReply:
            return .final
        case .departure:
            return first == ReplyCode.ok.rawValue ? .final : .none
        case .selfTelemetry:
            return .none
        }
    }
}
