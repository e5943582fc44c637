// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials

/// The host's side of a ``ShareProof``: one for each connection of a share with tokens.
///
///                      name                       challengeDrawn                     code fits
///     waitingForName ────────▶ waitingForChallenge ────────────▶ waitingForProof ──────────────▶ admitted
///           │                            │                               │
///           └──── any other frame ───────┴──── any other frame, or a code that does not fit ───▶ refused
///                                      (from all three: the deadline)
///
/// - `waitingForName` waits for the client to say which token it has.
/// - `waitingForChallenge` waits for the driver, which draws the nonce and computes the code at once.
/// - `waitingForProof` waits for the client's code.
///
/// A name that the share does not have is asked for its code as any other: names are no secret to be guessed, yet nobody is
/// told which there are.
struct ShareAccessStateMachine: ~Copyable {
    /// How long all of it may take, from the connection on and with the handshake of TLS if there is one.
    static let timeLimit = Duration.seconds(10)

    /// What a frame means.
    enum FrameAction: Sendable, Hashable {
        /// Draw a nonce, compute the code of this token, and call ``challengeDrawn(nonce:code:isKnown:)``.
        case drawChallenge(name: [UInt8])
        /// Answer with this frame; from the next frame on the client is one of the token's.
        case admit(name: [UInt8], reply: Data)
        /// Answer with this frame and close. Whether it was a code that does not fit: somebody may be guessing.
        case refuse(reply: Data, isFailure: Bool)
        /// It came after the end.
        case ignore
    }

    /// What follows a nonce.
    enum ChallengeAction: Sendable, Hashable {
        case send(Data)
        /// Nobody asked for it.
        case none
    }

    /// What a deadline means.
    enum DeadlineAction: Sendable, Hashable {
        /// It was early or repeated.
        case none
        /// The client took too long: close.
        case close
    }

    fileprivate enum State: ~Copyable {
        case waitingForName(until: Duration)
        case waitingForChallenge(name: [UInt8], until: Duration)
        case waitingForProof(name: [UInt8], code: [UInt8], isKnown: Bool, until: Duration)
        case admitted
        case refused
    }

    private var state: State

    /// `now`: when the connection was made.
    init(now: Duration) {
        state = .waitingForName(until: now + Self.timeLimit)
    }

    /// When ``deadlineReached(now:)`` wants to be called.
    var nextDeadline: Duration? {
        switch state {
        case .waitingForName(let until): until
        case .waitingForChallenge(_, let until): until
        case .waitingForProof(_, _, _, let until): until
        case .admitted: nil
        case .refused: nil
        }
    }

    // MARK: Inputs

    /// The client sent a frame.
    mutating func frameReceived(_ frame: Data) -> FrameAction { state.frameReceived(frame) }

    /// The nonce, and the code that fits. `isKnown`: whether the share has such a token; if not, the code is any, which
    /// took as long to compute.
    mutating func challengeDrawn(nonce: [UInt8], code: [UInt8], isKnown: Bool) -> ChallengeAction {
        state.challengeDrawn(nonce: nonce, code: code, isKnown: isKnown)
    }

    /// Time has passed.
    mutating func deadlineReached(now: Duration) -> DeadlineAction {
        guard let deadline = nextDeadline, now >= deadline else { return .none }
        state = .refused
        return .close
    }
}

extension ShareAccessStateMachine.State {
    fileprivate mutating func frameReceived(_ frame: Data) -> ShareAccessStateMachine.FrameAction {
        switch consume self {
        case .waitingForName(let until):
            guard let name = ShareProof.name(in: frame) else {
                self = .refused
                return .refuse(reply: ShareProof.notWanted, isFailure: false)
            }
            self = .waitingForChallenge(name: name, until: until)
            return .drawChallenge(name: name)
        case .waitingForChallenge:
            self = .refused
            return .refuse(reply: ShareProof.failed, isFailure: true)
        case .waitingForProof(let name, let code, let isKnown, _):
            guard let given = ShareProof.code(in: frame), Self.areEqual(given, code), isKnown else {
                self = .refused
                return .refuse(reply: ShareProof.failed, isFailure: true)
            }
            self = .admitted
            return .admit(name: name, reply: ShareProof.accepted)
        case .admitted:
            self = .admitted
            return .ignore
        case .refused:
            self = .refused
            return .ignore
        }
    }

    fileprivate mutating func challengeDrawn(
        nonce: [UInt8], code: [UInt8], isKnown: Bool
    ) -> ShareAccessStateMachine.ChallengeAction {
        switch consume self {
        case .waitingForChallenge(let name, let until):
            self = .waitingForProof(name: name, code: code, isKnown: isKnown, until: until)
            return .send(ShareProof.nonceFrame(nonce))
        case .waitingForName(let until):
            self = .waitingForName(until: until)
            return .none
        case .waitingForProof(let name, let code, let isKnown, let until):
            self = .waitingForProof(name: name, code: code, isKnown: isKnown, until: until)
            return .none
        case .admitted:
            self = .admitted
            return .none
        case .refused:
            self = .refused
            return .none
        }
    }

    /// Takes as long wherever the first difference is: a client must not learn a code byte by byte.
    private static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return zip(left, right).reduce(into: UInt8(0)) { $0 |= $1.0 ^ $1.1 } == 0
    }
}
