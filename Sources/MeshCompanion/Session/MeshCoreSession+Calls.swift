// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
public import MeshTransportAPI
internal import MeshWire

/// What the radio and, for a request, another node said to a command.
public struct CommandOutcome: Sendable, Hashable {
    /// One, or a series; none from a radio that went away as it was told.
    public var replies: [CompanionReply]
    /// The answer to a request to another node, or the radio's own telemetry.
    public var answer: CompanionPush?
}

/// From commands as values to calls, and back.
extension MeshCoreSession {
    /// Sends any command and returns what came: for commands that have no method, as those of other firmware.
    ///
    /// A request to another node waits for its turn and its answer. An error reply is thrown. With a `timeout`, the call
    /// also ends when that time has passed since it was made; without, it has the time of the lane from when it is sent.
    public func perform(
        _ command: CompanionCommand, timeout: Duration? = nil
    ) async throws(MeshError) -> CommandOutcome {
        let frame = try encode(command)
        let isRequest = MeshRequestStateMachine.isMeshRequest(frame)
        let answers = try await ask(frame, isRequest ? .request : .command, timeout: timeout)
        var replies: [CompanionReply] = []
        for reply in answers.replies { replies.append(try decode(reply, to: frame)) }
        return CommandOutcome(
            replies: replies,
            answer: try answers.push.map { (push) throws(MeshError) in try decode(push: push, to: frame) })
    }

    /// Sends a command and takes what its last reply says.
    func ask<Value>(
        _ command: CompanionCommand, _ purpose: CommandSlot.Purpose = .command, _ value: (CompanionReply) -> Value?
    ) async throws(MeshError) -> Value {
        let frame = try encode(command)
        guard let reply = try await ask(frame, purpose).replies.last, let value = value(try decode(reply, to: frame))
        else { throw .unreadable(frame) }
        return value
    }

    /// Sends a command that is answered with OK.
    func confirm(_ command: CompanionCommand) async throws(MeshError) {
        try await ask(command) { if case .ok = $0 { () } else { nil } }
    }

    /// Nil where the radio says that it has no such thing.
    func found<Value>(_ call: () async throws(MeshError) -> Value) async throws(MeshError) -> Value? {
        do throws(MeshError) {
            return try await call()
        } catch {
            if error.code == .radioNotFound { return nil }
            throw error
        }
    }

    func encode(_ command: CompanionCommand) throws(MeshError) -> Data {
        do throws(FieldError) {
            return try command.encoded()
        } catch {
            throw MeshError(error, MeshError.name(of: Data([command.code])))
        }
    }

    /// A reply to this command; an error reply is thrown.
    func decode(_ reply: Data, to command: Data) throws(MeshError) -> CompanionReply {
        let decoded: CompanionReply
        do throws(DecodeError) {
            decoded = try CompanionReply(decoding: reply)
        } catch {
            throw .unreadable(command, error)
        }
        switch decoded {
        case .error(let code): throw MeshError(radio: code, to: command)
        case .disabled: throw .disabled(command)
        default: return decoded
        }
    }

    func decode(push: Data, to command: Data) throws(MeshError) -> CompanionPush {
        do throws(DecodeError) {
            return try CompanionPush(decoding: push)
        } catch {
            throw .unreadable(command, error)
        }
    }
}
