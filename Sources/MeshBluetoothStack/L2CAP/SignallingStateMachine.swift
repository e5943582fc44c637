// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What one link says on LE signalling (Core Specification 5.4, Vol 3 Part A §4).
///
///     peer's request for parameters, as central:  valid?  ask whether it is granted; else "rejected"
///     peer's wish for a channel:                  answered "no such service"
///     own request for parameters, as peripheral:
///
///         ┌──────┐  updateRequested  ┌─────────┐  response, reject or 30 s
///         │ idle │ ────────────────▶ │ waiting │ ─────────────────────────▶ idle
///         └──────┘                   └─────────┘
///
/// Accepting without ordering the update is what raw-socket hosts get wrong: the peer then waits for parameters that
/// never come. What is granted, and when it is ordered, is ``LinkTuningStateMachine``'s to say. The response timer is RTX (§6.2.1): 1 to 60 s; 30 s here.
public struct SignallingStateMachine: ~Copyable, Sendable {
    public enum Action: Sendable, Hashable {
        case nothing
        /// Send this frame.
        case send(L2CAPFrame)
        /// The peer asks for these parameters, which are valid: answer with ``answer(toRequest:isGranted:)``.
        case consider(ConnectionParameters, identifier: UInt8)
        /// How the own request went.
        case finishUpdate(isAccepted: Bool)
    }

    public enum RequestAction: Sendable, Hashable {
        case send(L2CAPFrame)
        /// One request is under way already, or the central has to order it itself.
        case refuse
    }

    private enum State {
        case idle
        /// Waits for the response to this request.
        case waiting(identifier: UInt8, deadline: Duration)
    }

    private let role: LinkRole
    private var state = State.idle
    private var lastIdentifier: UInt8 = 0
    /// Frames without meaning, or answers to nothing.
    public private(set) var faults: UInt64 = 0

    public init(role: LinkRole) {
        self.role = role
    }

    /// When ``deadlineReached(now:)`` is due.
    public var nextDeadline: Duration? {
        switch state {
        case .idle: nil
        case .waiting(_, let deadline): deadline
        }
    }

    /// The payload of a frame on channel 5 came.
    public mutating func frameReceived(_ payload: [UInt8]) -> Action {
        let packet: SignallingPacket
        do {
            packet = try SignallingPacket.decode(payload.span.bytes)
        } catch {
            faults += 1
            // A command that cannot be read is rejected, if it has an identifier to be rejected by (§4.1).
            guard payload.count >= 2, payload[1] != 0, payload[0] != 0x01 else { return .nothing }
            return reject(payload[1])
        }
        switch packet.content {
        case .parameterUpdateRequest(let parameters):
            guard role == .central else { return reject(packet.identifier) }
            guard parameters.isValid else {
                return answer(packet.identifier, .parameterUpdateResponse(isAccepted: false))
            }
            return .consider(parameters, identifier: packet.identifier)
        case .parameterUpdateResponse(let isAccepted): return finish(packet.identifier, isAccepted: isAccepted)
        case .reject: return finish(packet.identifier, isAccepted: false)
        // Result 2: the service is not there (§4.23, §4.26).
        case .connectionRequest: return raw(0x15, packet.identifier, [0, 0, 0, 0, 0, 0, 0, 0, 2, 0])
        case .enhancedConnectionRequest: return raw(0x18, packet.identifier, [0, 0, 0, 0, 0, 0, 2, 0])
        case .disconnectionRequest(let destination, let source):
            return answer(
                packet.identifier,
                .reject(
                    .invalidChannel,
                    data: [
                        UInt8(truncatingIfNeeded: destination), UInt8(destination >> 8),
                        UInt8(truncatingIfNeeded: source), UInt8(source >> 8),
                    ]))
        case .other(let code):
            // The answer to an answer would be answered again; those have odd codes from 0x03 to 0x15, and 0x18, 0x1A.
            let isResponse = code < 0x16 ? code % 2 == 1 : code == 0x18 || code == 0x1A || code == 0x16
            if isResponse {
                faults += 1
                return .nothing
            }
            return reject(packet.identifier)
        }
    }

    /// The answer to a request for parameters.
    public func answer(toRequest identifier: UInt8, isGranted: Bool) -> L2CAPFrame {
        frame(identifier, .parameterUpdateResponse(isAccepted: isGranted))
    }

    /// The peripheral wants other parameters.
    public mutating func updateRequested(_ parameters: ConnectionParameters, now: Duration) -> RequestAction {
        guard role == .peripheral, case .idle = state, parameters.isValid else { return .refuse }
        lastIdentifier = lastIdentifier == 255 ? 1 : lastIdentifier + 1
        state = .waiting(identifier: lastIdentifier, deadline: now + .seconds(30))
        return .send(frame(lastIdentifier, .parameterUpdateRequest(parameters)))
    }

    /// The link has ended.
    public mutating func linkEnded() -> Action {
        guard case .waiting = state else { return .nothing }
        state = .idle
        return .finishUpdate(isAccepted: false)
    }

    /// Early calls change nothing.
    public mutating func deadlineReached(now: Duration) -> Action {
        guard let nextDeadline, nextDeadline <= now else { return .nothing }
        state = .idle
        return .finishUpdate(isAccepted: false)
    }

    private mutating func finish(_ identifier: UInt8, isAccepted: Bool) -> Action {
        guard case .waiting(identifier, _) = state else {
            faults += 1
            return .nothing
        }
        state = .idle
        return .finishUpdate(isAccepted: isAccepted)
    }

    private func reject(_ identifier: UInt8) -> Action { answer(identifier, .reject(.notUnderstood, data: [])) }

    private func answer(_ identifier: UInt8, _ content: SignallingPacket.Content) -> Action {
        .send(frame(identifier, content))
    }

    private func raw(_ code: UInt8, _ identifier: UInt8, _ data: [UInt8]) -> Action {
        .send(
            L2CAPFrame(
                channel: L2CAPFrame.signallingChannel, payload: SignallingPacket.packet(code, identifier, data)))
    }

    private func frame(_ identifier: UInt8, _ content: SignallingPacket.Content) -> L2CAPFrame {
        L2CAPFrame(
            channel: L2CAPFrame.signallingChannel,
            payload: SignallingPacket(identifier: identifier, content: content).bytes)
    }
}
