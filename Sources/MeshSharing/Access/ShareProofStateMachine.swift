// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials

/// The client's side of a ``ShareProof``: one for each connection to a share with tokens.
///
///            start                 nonce                   codeComputed                  00
///     idle ────────▶ waitingForNonce ────▶ waitingForCode ──────────────▶ waitingForWord ────▶ admitted
///                          └────────── any other frame ─────────────────────────┴────────────▶ failed
///
/// - `waitingForNonce` waits for the host's question.
/// - `waitingForCode` waits for the driver, which computes the code at once.
/// - `waitingForWord` waits for the host's yes or no.
///
/// A host that wants no proof answers `01 01` to the name, and so does a radio. Time is the driver's matter: it has one
/// limit for all that happens before a connection can be used.
struct ShareProofStateMachine: ~Copyable {
    /// Why the proof came to nothing.
    enum Failure: Sendable, Hashable {
        /// The host knows no such token, or its secret is another one.
        case refused
        /// The other end asks for no token: a share without, or a radio.
        case notWanted
        /// The other end does not speak this protocol.
        case unexpectedFrame
    }

    /// What a frame means.
    enum FrameAction: Sendable, Hashable {
        /// Compute the code of this nonce and call ``codeComputed(_:)``.
        case computeCode(nonce: [UInt8])
        /// The connection may be used from the next frame on.
        case proceed
        case fail(Failure)
        /// It came out of turn, after the end.
        case ignore
    }

    private enum State {
        case idle
        case waitingForNonce
        case waitingForCode
        case waitingForWord
        case admitted
        case failed
    }

    private let name: [UInt8]
    private var state = State.idle

    /// `name`: the token's.
    init(name: String) {
        self.name = Array(name.utf8)
    }

    /// The connection is there: the frame to send.
    mutating func start() -> Data {
        state = .waitingForNonce
        return ShareProof.nameFrame(name)
    }

    /// The code for the nonce: the frame to send.
    mutating func codeComputed(_ code: [UInt8]) -> Data {
        state = .waitingForWord
        return ShareProof.codeFrame(code)
    }

    /// The host sent a frame.
    mutating func frameReceived(_ frame: Data) -> FrameAction {
        switch state {
        case .waitingForNonce:
            if let nonce = ShareProof.nonce(in: frame) {
                state = .waitingForCode
                return .computeCode(nonce: nonce)
            }
            state = .failed
            return .fail(frame == ShareProof.notWanted ? .notWanted : .unexpectedFrame)
        case .waitingForWord:
            // Forks append to OK.
            if frame.first == ShareProof.accepted.first {
                state = .admitted
                return .proceed
            }
            state = .failed
            return .fail(frame == ShareProof.failed ? .refused : .unexpectedFrame)
        case .waitingForCode:
            state = .failed
            return .fail(.unexpectedFrame)
        case .idle, .admitted, .failed:
            return .ignore
        }
    }
}
