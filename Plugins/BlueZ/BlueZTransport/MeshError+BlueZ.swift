// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshDBus
internal import MeshTransportAPI

/// The errors of the bus and of bluetoothd, by name and text, as what they mean (BlueZ `src/error.c`, `src/gatt-client.c`,
/// `src/device.c`). Texts are not part of BlueZ's interface: what is not recognised falls back to what the name says.
extension BlueZFailure {
    init(_ error: DBusError, during operation: BlueZOperation) {
        let dbus = "org.freedesktop.DBus.Error."
        let bluez = "org.bluez.Error."
        switch error.name {
        case DBusError.cancelled: self = .cancelled
        case DBusError.serviceUnknown, DBusError.disconnected, dbus + "NameHasNoOwner", dbus + "NoServer",
            dbus + "Spawn.ServiceNotFound", dbus + "FileNotFound":
            self = .serviceGone
        case DBusError.noReply:
            // The bus says so at once when the called program dies; our own deadline says so, too. Of the operations with the
            // device, those that wait for it are silent because it is.
            self = operation == .connect ? .peerSilent : .serviceSilent
        case DBusError.accessDenied, dbus + "AuthFailed": self = .accessDenied
        case dbus + "UnknownObject", dbus + "UnknownMethod", dbus + "UnknownInterface", bluez + "DoesNotExist":
            self = .objectGone
        case bluez + "NotReady": self = .adapterOff
        case bluez + "Blocked": self = .adapterBlocked
        case bluez + "InProgress": self = .inProgress
        case bluez + "AlreadyConnected", bluez + "AlreadyExists": self = .alreadyDone
        case bluez + "NotConnected": self = .notConnected
        case bluez + "NotAuthorized": self = .securityInsufficient
        case bluez + "NotPermitted": self = Self.notPermitted(error.message)
        // Of a connection these are moods of bluetoothd's; only of an attribute do they say what the device is.
        case bluez + "NotSupported", bluez + "NotAvailable": self = operation == .connect ? .other : .unsupported
        case bluez + "InvalidArguments" where error.message.contains("Length"): self = .valueTooLong
        case bluez + "InvalidValueLength": self = .valueTooLong
        case bluez + "AuthenticationFailed", bluez + "AuthenticationTimeout", bluez + "AuthenticationRejected",
            bluez + "AuthenticationCanceled", bluez + "ConnectionAttemptFailed":
            self = Self.pairing(error.name.dropFirst(bluez.count), during: operation)
        case bluez + "Failed": self = Self.failed(error.message, during: operation)
        default: self = .other
        }
    }

    /// ATT 0x05, 0x0C and 0x0F come as one text, "Not paired".
    private static func notPermitted(_ text: String) -> BlueZFailure {
        switch text {
        case "Write acquired", "Notify acquired": .acquiredElsewhere
        case "Not paired": .securityInsufficient
        default: .notAllowed
        }
    }

    /// Nothing is said of a pin where no pairing was asked for.
    private static func pairing(_ name: Substring, during operation: BlueZOperation) -> BlueZFailure {
        guard case .pair(let passkeyWasAsked) = operation else { return .other }
        return switch name {
        case "AuthenticationFailed": passkeyWasAsked ? .passkeyWrong : .agentNotAsked
        case "AuthenticationTimeout": .pairingTimeout
        case "AuthenticationRejected": .pairingRejected
        default: .pairingInterrupted
        }
    }

    private static func failed(_ text: String, during operation: BlueZOperation) -> BlueZFailure {
        let att = "Operation failed with ATT error: 0x"
        if text.hasPrefix(att), let code = UInt8(text.dropFirst(att.count).prefix(2), radix: 16) {
            switch code {
            case 0x05, 0x0C, 0x0F: return .securityInsufficient
            case 0x0D: return .valueTooLong
            default: return .att(code)
            }
        }
        switch text {
        case "le-connection-abort-by-local", "le-connection-canceled", "le-connection-abort-by-remote",
            "Software caused connection abort":
            return .linkAborted
        case "le-connection-timeout", "Host is down", "Connection timed out": return .peerSilent
        case "le-connection-refused", "le-connection-concurrent-connection-limit", "le-connection-busy",
            "le-connection-memory-allocation":
            return .noSlots
        case "le-connection-key-missing": return .bondStale
        case "le-connection-adapter-not-powered": return .adapterOff
        case "Not connected", "Not Connected": return .notConnected
        case "Blocked through rfkill": return .adapterBlocked
        default: return text.contains("In Progress") || text.contains("in progress") ? .inProgress : .other
        }
    }
}

extension GATTError {
    /// What went wrong between us and bluetoothd, with what to try. `peer` is the device as people name it, `adapter` the
    /// adapter.
    init(_ failure: BlueZFailure, during operation: BlueZOperation, peer: String, adapter: String, cause: DBusError?) {
        let (reason, code, text) = failure.meaning(operation, peer, adapter, cause)
        self.init(
            reason,
            MeshError(
                code, text, cause: cause, context: .init(operation: operation.name, peer: peer.isEmpty ? nil : peer)))
    }

    /// The same from an error of the bus.
    init(_ error: DBusError, during operation: BlueZOperation, peer: String, adapter: String) {
        let failure = BlueZFailure(error, during: operation)
        self.init(failure, during: operation, peer: peer, adapter: adapter, cause: error)
    }
}

extension BlueZFailure {
    fileprivate typealias Meaning = (GATTError.Reason, MeshError.Code, String)

    fileprivate func meaning(
        _ operation: BlueZOperation, _ peer: String, _ adapter: String, _ cause: DBusError?
    ) -> Meaning {
        switch self {
        case .cancelled: (.cancelled, .cancelled, "the operation was cancelled")
        case .serviceGone, .serviceSilent, .accessDenied, .adapterOff, .adapterBlocked: unavailable(adapter)
        case .agentNotTaken:
            (
                .other, .connectionFailed,
                "bluetoothd did not take our pairing agent, so \(peer) could not be given its pin; the log has the reason"
            )
        case .objectGone: (.unreachable, .connectionFailed, "bluetoothd has forgotten \(peer); it is looked for again")
        case .inProgress, .acquiredElsewhere: inUse(operation, peer, adapter)
        case .alreadyDone: (.other, .internalError, "bluetoothd says that it is done already")
        case .linkAborted:
            (
                .unreachable, .connectionFailed,
                "the connection to \(peer) was aborted before it was up; weak signal, or too much traffic on the air?"
            )
        case .adapterNotReady:
            (.unreachable, .connectionFailed, "\(adapter) was not ready, though it is switched on; it is tried again")
        case .bondSuspect:
            (
                .bondSuspect, .connectionFailed,
                "each link to \(peer) ends as soon as it is up; the radio may have lost its bond with this host. "
                    + "`meshhost unpair \(peer)` forgets it here, and the radio is paired with anew with its pin; "
                    + "`stale_bond_repairs` has that done by itself"
            )
        case .peerSilent:
            (
                .unreachable, .connectionTimeout,
                "\(peer) did not answer; is it on, in range, and not connected to another host?"
            )
        case .noSlots:
            (
                .unreachable, .resourceExhausted,
                "\(adapter) has no room for a link to \(peer); disconnect another device, or use a second adapter"
            )
        case .notConnected: (.linkLost, .linkClosed, "the link to \(peer) has ended")
        case .securityInsufficient, .bondStale, .passkeyWrong, .agentNotAsked, .pairingTimeout, .pairingRejected,
            .pairingInterrupted:
            security(operation, peer)
        case .notAllowed:
            (
                .notSupported, .notSupported,
                "\(peer) does not allow this on the characteristic\(Self.quoted(cause)); is it the right device, "
                    + "with companion firmware?"
            )
        case .unsupported:
            (
                .notSupported, .notSupported,
                "\(peer) cannot do this\(Self.quoted(cause)); is it the right device, with companion firmware?"
            )
        case .valueTooLong:
            (.other, .frameTooLong, "\(peer) does not take a value of this length; its firmware's limit is smaller")
        case .att(let code):
            (
                .other, .linkClosed,
                "\(peer) answered with ATT error 0x\(String(code, radix: 16)); the link is made anew"
            )
        case .other:
            (.other, .connectionFailed, "bluetoothd could not \(operation.name) \(peer)\(Self.quoted(cause))")
        }
    }

    private func unavailable(_ adapter: String) -> Meaning {
        switch self {
        case .accessDenied:
            (
                .bluetoothUnavailable, .permissionDenied,
                "the policy of the system bus lets this user not use Bluetooth; join the group bluetooth, or see "
                    + "`meshhost doctor`"
            )
        case .adapterOff:
            (
                .bluetoothUnavailable, .adapterUnavailable,
                "\(adapter) is switched off; `bluetoothctl power on` switches it on"
            )
        case .adapterBlocked:
            (
                .bluetoothUnavailable, .adapterUnavailable,
                "\(adapter) is blocked by rfkill; `rfkill unblock bluetooth` lifts it"
            )
        case .serviceSilent:
            (
                .bluetoothUnavailable, .serviceUnavailable,
                "bluetoothd did not answer in time; `systemctl restart bluetooth` restarts it"
            )
        default:
            (
                .bluetoothUnavailable, .adapterUnavailable,
                "the Bluetooth service is not running; `systemctl start bluetooth` starts it"
            )
        }
    }

    private func inUse(_ operation: BlueZOperation, _ peer: String, _ adapter: String) -> Meaning {
        switch operation {
        case .discover:
            (
                .other, .connectionFailed,
                "the search on \(adapter) is stuck in bluetoothd; `bluetoothctl power off` and `on` frees it, as does "
                    + "the option power_on"
            )
        default:
            (
                .inUse, .connectionFailed,
                "\(peer) is in use by another program on this machine; close it there, or disconnect it with "
                    + "`bluetoothctl disconnect`"
            )
        }
    }

    private func security(_ operation: BlueZOperation, _ peer: String) -> Meaning {
        switch self {
        case .bondStale:
            (
                .bondStale, .authenticationFailed,
                "\(peer) does not know this host's keys any more; `meshhost unpair` and `pair` make new ones"
            )
        case .passkeyWrong:
            (.pairingFailed, .authenticationFailed, "\(peer) refused the pin; compare it with the one it shows")
        case .agentNotAsked:
            (
                .pairingFailed, .authenticationFailed,
                "\(peer) refused to pair and did not ask for a pin; it may hold keys of an earlier pairing, or pair with "
                    + "nobody at present"
            )
        case .pairingTimeout:
            (
                .pairingFailed, .authenticationFailed,
                "the pairing with \(peer) took too long; give its pin in the option pin"
            )
        case .pairingRejected:
            (
                .pairingFailed, .authenticationFailed,
                "the pairing with \(peer) was rejected; give its pin in the option pin"
            )
        case .pairingInterrupted:
            (
                .linkLost, .linkClosedByPeer,
                "the pairing with \(peer) was interrupted before it came to a pin, or the link was lost; it is tried again"
            )
        default:
            (
                .insufficientSecurity, .authenticationFailed,
                "\(peer) refuses until it is paired with its pin; give it in the option pin, or use `meshhost pair`"
            )
        }
    }

    private static func quoted(_ cause: DBusError?) -> String {
        guard let cause else { return "" }
        let name = cause.name.split(separator: ".").last.map(String.init) ?? cause.name
        return " (\(cause.message.isEmpty ? name : cause.message))"
    }
}

extension GATTError {
    /// Why a link that was up has ended, from what `Device1.Disconnected` said before (BlueZ from 5.79), if it did.
    init(lossOf peer: String, reason: String?) {
        let context = MeshError.Context(peer: peer)
        switch reason {
        case "org.bluez.Reason.Authentication":
            self.init(
                .bondStale,
                MeshError(
                    .authenticationFailed,
                    "\(peer) does not know this host's keys any more; `meshhost unpair` and `pair` make new ones",
                    context: context))
        case "org.bluez.Reason.Remote":
            self.init(.linkLost, MeshError(.linkClosedByPeer, "\(peer) closed the link", context: context))
        case "org.bluez.Reason.Timeout":
            self.init(
                .linkLost,
                MeshError(
                    .connectionTimeout, "\(peer) stopped answering; out of range, or switched off?", context: context))
        case "org.bluez.Reason.Local", "org.bluez.Reason.Suspend":
            self.init(
                .linkLost, MeshError(.linkClosed, "this machine ended the link to \(peer)", context: context))
        default: self.init(.linkLost, MeshError(.linkClosed, "the link to \(peer) was lost", context: context))
        }
    }

    /// The caller gave up.
    static func cancelled(_ operation: BlueZOperation, peer: String) -> GATTError {
        GATTError(.cancelled, during: operation, peer: peer, adapter: "", cause: nil)
    }
}
