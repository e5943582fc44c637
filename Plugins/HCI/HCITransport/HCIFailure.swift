// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshTransportAPI

/// What this host does with a peer, for the texts of errors.
enum HCIOperation: String, Sendable {
    case connect
    case discover
    case pair
    case scan
    case subscribe
    case write
}

/// The stack's failures, as what they mean for a device that people know as `peer`.
extension GATTError {
    init(_ reason: Reason, _ code: MeshError.Code, _ text: String, _ operation: HCIOperation, _ peer: String) {
        self.init(reason, MeshError(code, text, context: .init(operation: operation.rawValue, peer: peer)))
    }

    static func cancelled(_ operation: HCIOperation, _ peer: String) -> GATTError {
        GATTError(.cancelled, .cancelled, "the operation was cancelled", operation, peer)
    }

    static func controllerGone(_ adapter: String, _ operation: HCIOperation, _ peer: String) -> GATTError {
        GATTError(
            .bluetoothUnavailable, .adapterUnavailable, "the controller at \(adapter) does not answer; is it there?",
            operation, peer)
    }

    static func linkClosed(_ operation: HCIOperation, _ peer: String) -> GATTError {
        GATTError(.linkLost, .notConnected, "the link to \(peer) has ended", operation, peer)
    }

    /// What was stored of the device's attributes has turned out wrong; the next link looks for them.
    static func handlesMoved(_ operation: HCIOperation, _ peer: String) -> GATTError {
        GATTError(.linkLost, .linkClosed, "\(peer) has other attributes than before", operation, peer)
    }

    /// A write was not acknowledged in time. Nothing may be asked on that link any more (Core Specification 5.4, Vol 3 Part F
    /// §3.3.3), so it has been ended.
    static func unacknowledged(_ peer: String) -> GATTError {
        GATTError(
            .linkLost, .operationTimeout, "\(peer) did not acknowledge a frame, and none may follow it", .write, peer)
    }

    init(_ failure: GATTFailure, _ operation: HCIOperation, _ peer: String) {
        switch failure {
        case .refused(let code, _) where code.asksForSecurity:
            self.init(
                .insufficientSecurity, .authenticationFailed, "\(peer) wants a pairing first", operation, peer)
        case .refused(.requestNotSupported, _):
            self.init(.notSupported, .notSupported, "\(peer) does not know this request", operation, peer)
        case .refused(let code, _):
            let digits = String(code.rawValue, radix: 16)
            self.init(.other, .connectionFailed, "\(peer) refuses: ATT error 0x\(digits)", operation, peer)
        case .meaninglessAnswer, .preparedWriteMangled:
            self.init(.other, .connectionFailed, "\(peer) gave an answer without meaning", operation, peer)
        case .valueTooLong:
            self.init(.other, .frameTooLong, "the value is longer than \(peer) takes", operation, peer)
        case .timedOut: self.init(.linkLost, .operationTimeout, "\(peer) does not answer", operation, peer)
        case .queueFull: self.init(.other, .queueFull, "too much waits for \(peer)", operation, peer)
        case .bearerEnded: self = .linkClosed(operation, peer)
        }
    }

    /// Why a link has ended. `provedKeys`: it had no stored keys to doubt, or these had encrypted it. They are the right ones
    /// then, whatever a packet looked like later: noise makes such packets, and so can a stranger.
    init(_ end: LinkProcedureStateMachine.End, provedKeys: Bool, _ peer: String) {
        switch end {
        case .unanswered: self.init(.linkLost, .linkClosed, "the controller lost the link to \(peer)", .connect, peer)
        case .disconnected(let reason): self.init(endedFor: reason, provedKeys: provedKeys, peer)
        }
    }

    private init(endedFor reason: HCIStatus, provedKeys: Bool, _ peer: String) {
        switch reason {
        case .remoteUserTerminated, .remoteLowResources, .remotePowerOff:
            self.init(.linkLost, .linkClosedByPeer, "\(peer) ended the link", .connect, peer)
        case .localHostTerminated: self.init(.linkLost, .linkClosed, "this host ended the link", .connect, peer)
        case .connectionTimeout:
            self.init(.linkLost, .linkClosed, "nothing was heard of \(peer) any more", .connect, peer)
        case .integrityFailure where provedKeys:
            self.init(
                .linkLost, .linkClosed,
                "a packet of the link to \(peer) was damaged, or not of its making; such a packet ends a link",
                .connect,
                peer)
        case .integrityFailure:
            self.init(
                .bondStale, .authenticationFailed, "the keys of \(peer) are not those of this host", .connect, peer)
        default: self.init(.linkLost, .linkClosed, "the link to \(peer) ended: HCI \(reason)", .connect, peer)
        }
    }

    /// Why there is no link; nil if there is.
    init?(_ result: ConnectStateMachine.Result, adapter: String, _ peer: String) {
        switch result {
        case .connected: return nil
        case .failed(.connectionLimit), .failed(.limitedResources), .failed(.memoryExceeded):
            self.init(.other, .resourceExhausted, "\(adapter) has no room for another link", .connect, peer)
        case .failed(let status):
            self.init(
                .unreachable, .connectionFailed, "no link to \(peer): HCI \(status); is it in range?", .connect, peer)
        case .timedOut:
            self.init(
                .unreachable, .connectionTimeout,
                "\(peer) did not answer; is it on, in range, and not connected to another host?", .connect, peer)
        case .cancelled: self = .cancelled(.connect, peer)
        case .controllerLost: self = .controllerGone(adapter, .connect, peer)
        case .busy: self.init(.other, .contended, "\(adapter) makes another link", .connect, peer)
        }
    }

    /// `passes`: trying it again may help, and the passkey has no part in it.
    init(_ failure: PairingFailure, passes: Bool, _ peer: String) {
        let text =
            switch failure {
            case _ where passes: "\(peer) does not pair now: \(failure); it is tried again"
            case _ where failure.isWrongPasskey: "\(peer) did not accept the pin; is it the one that it shows?"
            case .downgraded: "\(peer) would pair without the pin; has it one set?"
            case .timedOut: "\(peer) stopped answering while pairing"
            case .encryptionFailed(let status): "the link to \(peer) could not be encrypted: HCI \(status)"
            case .linkEnded: "the link to \(peer) ended while pairing"
            case .failedByPeer, .failedByHost: "pairing with \(peer) failed: \(failure)"
            }
        switch failure {
        case .linkEnded, .timedOut: self.init(.linkLost, .linkClosed, text, .pair, peer)
        // The passkey has no part in these, and trying again may help.
        case .encryptionFailed: self.init(.other, .connectionFailed, text, .pair, peer)
        case .failedByPeer where passes, .failedByHost where passes:
            self.init(.other, .connectionFailed, text, .pair, peer)
        default: self.init(.pairingFailed, .authenticationFailed, text, .pair, peer)
        }
    }
}
