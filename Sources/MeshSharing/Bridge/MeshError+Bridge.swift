// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshCrypto
internal import MeshLoop
internal import MeshTransportAPI

/// Why a bridge's connection could not be made, or broke, and what to do about it.
extension MeshError {
    /// The share's host has no address, or cannot be reached.
    init(reaching error: LoopError, _ settings: BridgeSettings) {
        let remote = settings.remote
        switch error.kind {
        case .hostNotFound:
            self.init(.hostNotFound, "\(settings.host) has no address; is the name right?", cause: error)
        case .connectionRefused:
            self.init(
                .connectionRefused, "\(remote) refused the connection; does the host run, and is the port right?",
                cause: error)
        case .timedOut, .cancelled:
            self.init(.connectionTimeout, "\(remote) did not answer; is it on, and the way to it free?", cause: error)
        case .networkUnreachable:
            self.init(.adapterUnavailable, "no network leads to \(remote); is this machine online?", cause: error)
        default:
            self.init(.connectionFailed, "\(remote) cannot be reached: \(error.detail)", cause: error)
        }
    }

    init(tooSlow settings: BridgeSettings) {
        self.init(
            .connectionTimeout,
            "\(settings.remote) could not be reached and opened in \(settings.openingLimit.optionText)")
    }

    /// The connection ended before it could be used.
    init(opening failure: ShareStream.Failure?, to settings: BridgeSettings) {
        let remote = settings.remote
        switch failure {
        case .tls(.pinDiffers):
            self.init(
                .authenticationFailed,
                "\(remote) has another certificate than the pinned one; if it was renewed, pin the new one",
                cause: failure)
        case .tls(.certificateRefused(let reason)):
            self.init(
                .authenticationFailed,
                "the certificate of \(remote) is not accepted: \(reason); name its authority with --ca, or the certificate "
                    + "itself with --pin", cause: failure)
        case .tls(let error):
            self.init(.connectionFailed, "\(remote): \(error); does this share speak TLS?", cause: failure)
        case .connection(let error):
            self.init(.connectionFailed, "the connection to \(remote) broke: \(error.detail)", cause: failure)
        case nil:
            self.init(
                .linkClosedByPeer,
                "\(remote) closed the connection before it could be used; "
                    + (settings.tls == nil ? "does the share want TLS? or is it full?" : "is the share full?"))
        }
    }

    /// The connection ended while it was used.
    init(broken failure: ShareStream.Failure, to settings: BridgeSettings) {
        let detail =
            switch failure {
            case .connection(let error): error.detail
            case .tls(let error): error.description
            }
        self.init(.linkClosed, "the connection to \(settings.remote) broke: \(detail)", cause: failure)
    }

    /// The program's connection broke.
    init(brokenBy error: LoopError) {
        self.init(.linkClosed, "the client's connection broke: \(error.detail)", cause: error)
    }

    /// The share does not take the token.
    init(proof failure: ShareProofStateMachine.Failure, of token: String, to settings: BridgeSettings) {
        switch failure {
        case .refused:
            self.init(
                .authenticationFailed,
                "\(settings.remote) refuses the token \"\(token)\"; are its name and its secret the same there?")
        case .notWanted:
            self.init(
                .notSupported,
                "\(settings.remote) asks for no token: it is a share without, or a radio; leave --token out")
        case .unexpectedFrame:
            self.init(
                .handshakeFailed, "\(settings.remote) does not know how to ask for a token; is it a share of meshhost?")
        }
    }
}
