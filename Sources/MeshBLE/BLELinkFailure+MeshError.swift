// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// What is known of the other end when something has to be said about it.
struct BLESubject {
    var target: BLETarget
    /// Of the same device; nil where it has not been seen yet.
    var peer: GATTPeer?
    var adapterName: String

    /// `NAME (ADDRESS)`, as far as they are known.
    var name: String {
        guard let peer else { return "\(target)" }
        return peer.name.isEmpty ? peer.address.text : "\(peer.name) (\(peer.address.text))"
    }

    /// ` (RSSI -70 dBm when last heard)`, or nothing.
    fileprivate var signal: String { peer?.rssi.map { " (RSSI \($0) dBm when last heard)" } ?? "" }

    /// For a command line.
    fileprivate var address: String {
        if let peer { return peer.address.text }
        return if case .address(let address) = target { address.text } else { "ADDRESS" }
    }
}

/// What people get to read. Each text says where, what, and what to try.
extension MeshError {
    init(_ failure: BLELinkFailure, of subject: BLESubject) {
        let context = Context(operation: failure.phase == .connected ? "link" : "connect", peer: subject.name)
        let place = "while \(failure.activity) (\(subject.name)): "
        var cause: (any Error)?
        var text: String
        switch failure.cause {
        case .bluetooth(let state):
            let error = state.error(adapter: subject.adapterName)
            text = place + (error?.message ?? "\(subject.adapterName) is not usable yet")
        case .timedOut(let limit):
            text = place + "no end after \(limit.optionText)\(subject.signal); " + failure.adviceAfterTimeout
        case .operation(let error):
            cause = error.error
            switch error.reason {
            case .inUse:
                text = place + "another program is connected to this radio; close it, or let it share: "
                text += error.error.message
            case .cancelled: text = place + "the Bluetooth host gave up; it is tried again"
            case .bluetoothUnavailable, .unreachable, .linkLost, .insufficientSecurity, .bondStale, .bondSuspect,
                .pairingFailed,
                .notSupported, .other:
                text = place + error.error.message + subject.signal
            }
        case .linkLost(let error):
            cause = error.error
            text =
                failure.phase == .connected
                ? "the link to \(subject.name) was lost\(subject.signal): \(error.error.message)"
                : place + "the link was lost\(subject.signal): \(error.error.message)"
        case .missing(let uuid, let isNew):
            text =
                isNew
                ? place + "the device had \(uuid) and has not now; it may be starting, it is tried again"
                : place + "the device has no usable \(uuid); is this the radio that is meant, with companion firmware?"
        case .authentication(let reason): text = place + reason.text(subject)
        case .writesTimedOut(let limit):
            text = "\(subject.name) acknowledged two writes in a row not within \(limit.optionText)\(subject.signal); "
            text += "the link is made anew"
        case .pairingNeeded:
            text = "\(subject.name) refused a write for lack of security; it is paired with anew at the next attempt"
        case .requested: text = place + "the attempt was cancelled"
        case .inconsistent: text = place + "the parts of the program disagree about this link; please report it"
        }
        if let unheard = failure.unheardFor {
            text += "; nothing was heard of it for \(unheard.components.seconds) s: power-cycle the radio, or end what "
            text += "else may be connected to it, since a connected radio does not advertise"
        }
        self.init(failure.code, text, cause: cause, context: context)
    }

    init(_ failure: BLEWriteFailure, of subject: BLESubject) {
        let context = Context(operation: "send", peer: subject.name)
        switch failure {
        case .notConnected:
            self.init(.notConnected, "there is no link to \(subject.name); connect first", context: context)
        case .empty: self.init(.invalidArgument, "an empty frame cannot be sent", context: context)
        case .tooLong(let limit):
            self.init(
                .frameTooLong, "the link to \(subject.name) carries at most \(limit) bytes in one frame",
                context: context)
        case .queueFull:
            self.init(
                .queueFull, "\(BLEWriteQueue<Void>.limit) frames wait to be sent to \(subject.name)", context: context)
        case .cancelled: self.init(.cancelled, "the sending of a frame was cancelled", context: context)
        case .timedOut(let limit, let endsLink):
            self.init(
                .operationTimeout,
                "\(subject.name) did not acknowledge a frame within \(limit.optionText); it may have arrived, and the "
                    + (endsLink ? "link is made anew" : "link is still up"),
                context: context)
        case .failed(let error):
            let text =
                error.reason == .inUse
                ? "another program is connected to this radio: \(error.error.message)"
                : "\(subject.name) did not take a frame: \(error.error.message)"
            let code = error.reason == .inUse ? Code.contended : error.reason == .notSupported ? .notSupported : nil
            self.init(code ?? error.error.code, text, cause: error.error, context: context)
        case .linkEnded(let failure):
            if case .requested = failure.cause {
                self.init(
                    .linkClosed, "the link to \(subject.name) was closed before the frame was sent", context: context)
            } else {
                let error = MeshError(failure, of: subject)
                self.init(error.code, error.message, cause: error.cause, context: context)
            }
        }
    }
}

extension BLELinkFailure {
    fileprivate var activity: String {
        if let operation { return operation.activity }
        return switch phase {
        case .waitingForBluetooth: "waiting for Bluetooth"
        case .autoReconnecting: "reconnecting"
        case .disconnecting: "disconnecting"
        case .connected: "connected"
        case .idle, .connecting, .discoveringServices, .discoveringCharacteristics, .subscribingToNotifications,
            .discoveryComplete, .restoringState:
            "connecting"
        }
    }

    fileprivate var adviceAfterTimeout: String {
        switch operation {
        case .connect, .adopt, .removeBond, nil:
            "is the radio on, in range, and not connected to something else?"
        case .pair: "is a dialogue for this radio open elsewhere?"
        case .discoverServices, .discoverCharacteristics, .subscribe, .readWriteLength, .write, .close:
            "the radio is weak or hangs; bring it nearer, or power-cycle it"
        }
    }
}

extension BLESecurityPolicy.Failure {
    fileprivate func text(_ subject: BLESubject) -> String {
        switch self {
        case .passkeyMissing: "the radio needs a PIN: set `pin`"
        case .passkeyRefused:
            "the PIN is wrong, or the radio refuses to pair; compare `pin` with what the radio shows (MeshCore's default is "
                + "123456)"
        case .pairingForbidden: "the radio wants to be paired with, and `pairing = \"never\"` forbids it"
        case .refusedAgain:
            "the radio refuses to be used even with a bond made anew; compare `pin` with what the radio shows, and look "
                + "whether another program answers for the passkey"
        case .bondStale(let allowed):
            "the radio does not know this host's bond any more; `meshhost unpair \(subject.address)`, then `meshhost pair "
                + "\(subject.address)`"
                + (allowed == 0 ? ", or allow it with `stale_bond_repairs`" : " (\(allowed) repairs today are used up)")
        }
    }
}
