// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
import MeshDBus
import MeshTransportAPI
import Testing

@testable import MeshBlueZTransport

/// The table of what bluetoothd's errors mean, row by row.
struct BlueZErrorTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        var text = ""
        var operation: BlueZOperation
        var failure: BlueZFailure
        var reason: GATTError.Reason
        var code: MeshError.Code

        var testDescription: String { "\(name) \(text) during \(operation)" }
    }

    static let rows: [Row] = bus + connecting + attributes + pairing

    private static func row(
        _ name: String, _ text: String, _ operation: BlueZOperation, _ failure: BlueZFailure,
        _ reason: GATTError.Reason, _ code: MeshError.Code
    ) -> Row {
        let full = name.contains(".") ? name : "org.bluez.Error." + name
        return Row(name: full, text: text, operation: operation, failure: failure, reason: reason, code: code)
    }

    private static let dbus = "org.freedesktop.DBus.Error."

    private static let bus: [Row] = [
        row(dbus + "ServiceUnknown", "", .connect, .serviceGone, .bluetoothUnavailable, .adapterUnavailable),
        row(dbus + "NameHasNoOwner", "", .readTree, .serviceGone, .bluetoothUnavailable, .adapterUnavailable),
        row(dbus + "Disconnected", "", .write, .serviceGone, .bluetoothUnavailable, .adapterUnavailable),
        row(dbus + "NoReply", "", .write, .serviceSilent, .bluetoothUnavailable, .serviceUnavailable),
        row(dbus + "NoReply", "", .connect, .peerSilent, .unreachable, .connectionTimeout),
        row(dbus + "AccessDenied", "", .connect, .accessDenied, .bluetoothUnavailable, .permissionDenied),
        row(dbus + "UnknownObject", "", .connect, .objectGone, .unreachable, .connectionFailed),
        row(dbus + "UnknownMethod", "", .write, .objectGone, .unreachable, .connectionFailed),
        row("meshhost.Cancelled", "", .connect, .cancelled, .cancelled, .cancelled),
        row("com.example.Odd", "", .connect, .other, .other, .connectionFailed),
    ]

    private static let connecting: [Row] = [
        row("NotAvailable", "br-connection-profile-unavailable", .connect, .other, .other, .connectionFailed),
        row("NotSupported", "", .connect, .other, .other, .connectionFailed),
        row("AuthenticationFailed", "", .connect, .other, .other, .connectionFailed),
        row("AuthenticationRejected", "", .connect, .other, .other, .connectionFailed),
        row("NotReady", "Resource Not Ready", .connect, .adapterOff, .bluetoothUnavailable, .adapterUnavailable),
        row("Blocked", "", .powerOn, .adapterBlocked, .bluetoothUnavailable, .adapterUnavailable),
        row("InProgress", "", .connect, .inProgress, .inUse, .connectionFailed),
        row("InProgress", "", .discover, .inProgress, .other, .connectionFailed),
        row("AlreadyConnected", "", .connect, .alreadyDone, .other, .internalError),
        row("Failed", "le-connection-abort-by-local", .connect, .linkAborted, .unreachable, .connectionFailed),
        row("Failed", "le-connection-timeout", .connect, .peerSilent, .unreachable, .connectionTimeout),
        row("Failed", "le-connection-refused", .connect, .noSlots, .unreachable, .resourceExhausted),
        row(
            "Failed", "le-connection-concurrent-connection-limit", .connect, .noSlots, .unreachable, .resourceExhausted),
        row("Failed", "le-connection-busy", .connect, .noSlots, .unreachable, .resourceExhausted),
        row("Failed", "le-connection-memory-allocation", .connect, .noSlots, .unreachable, .resourceExhausted),
        row("Failed", "le-connection-key-missing", .connect, .bondStale, .bondStale, .authenticationFailed),
        row(
            "Failed", "le-connection-adapter-not-powered", .connect, .adapterOff, .bluetoothUnavailable,
            .adapterUnavailable),
        row("Failed", "le-connection-something-new", .connect, .other, .other, .connectionFailed),
    ]

    private static let attributes: [Row] = [
        row("Failed", "Operation failed with ATT error: 0x0e", .write, .att(0x0E), .other, .linkClosed),
        row("Failed", "Operation failed with ATT error: 0x80", .write, .att(0x80), .other, .linkClosed),
        row("Failed", "Operation failed with ATT error: 0xfd", .subscribe, .att(0xFD), .other, .linkClosed),
        row(
            "Failed", "Operation failed with ATT error: 0x0f", .write, .securityInsufficient, .insufficientSecurity,
            .authenticationFailed),
        row("NotPermitted", "Not paired", .write, .securityInsufficient, .insufficientSecurity, .authenticationFailed),
        row("NotPermitted", "Write not permitted", .write, .notAllowed, .notSupported, .notSupported),
        row("NotPermitted", "Read not permitted", .read, .notAllowed, .notSupported, .notSupported),
        row("NotPermitted", "Write acquired", .write, .acquiredElsewhere, .inUse, .connectionFailed),
        row("NotPermitted", "Notify acquired", .subscribe, .acquiredElsewhere, .inUse, .connectionFailed),
        row("NotSupported", "", .subscribe, .unsupported, .notSupported, .notSupported),
        row("NotConnected", "", .write, .notConnected, .linkLost, .linkClosed),
        row("Failed", "Not connected", .write, .notConnected, .linkLost, .linkClosed),
        row("InvalidArguments", "Invalid Length", .write, .valueTooLong, .other, .frameTooLong),
        row("InvalidArguments", "Invalid arguments", .write, .other, .other, .connectionFailed),
        row(
            "NotAuthorized", "", .write, .securityInsufficient, .insufficientSecurity, .authenticationFailed),
    ]

    private static let pairing: [Row] = [
        row(
            "AuthenticationFailed", "", .pair(passkeyWasAsked: true), .passkeyWrong, .pairingFailed,
            .authenticationFailed),
        row(
            "AuthenticationFailed", "", .pair(passkeyWasAsked: false), .agentNotAsked, .pairingFailed,
            .authenticationFailed),
        row(
            "AuthenticationTimeout", "", .pair(passkeyWasAsked: false), .pairingTimeout, .pairingFailed,
            .authenticationFailed),
        row(
            "AuthenticationRejected", "", .pair(passkeyWasAsked: false), .pairingRejected, .pairingFailed,
            .authenticationFailed),
        row(
            "AuthenticationCanceled", "", .pair(passkeyWasAsked: false), .pairingInterrupted, .linkLost,
            .linkClosedByPeer),
        row(
            "ConnectionAttemptFailed", "Page Timeout", .pair(passkeyWasAsked: false), .pairingInterrupted, .linkLost,
            .linkClosedByPeer),
        row("AlreadyExists", "", .pair(passkeyWasAsked: false), .alreadyDone, .other, .internalError),
        row("DoesNotExist", "", .removeBond, .objectGone, .unreachable, .connectionFailed),
    ]

    @Test(arguments: rows)
    func `an error means what the table says`(row: Row) {
        let error = DBusError(row.name, row.text)
        #expect(BlueZFailure(error, during: row.operation) == row.failure)
        let told = GATTError(error, during: row.operation, peer: "roof", adapter: "hci0")
        #expect(told.reason == row.reason)
        #expect(told.error.code == row.code)
        #expect(told.error.cause as? DBusError == error)
        #expect(told.error.context.operation == row.operation.name && told.error.context.peer == "roof")
    }

    @Test(arguments: rows.filter { $0.failure != .cancelled && $0.failure != .alreadyDone })
    func `a text says more than the name of the error, and names no hardware`(row: Row) {
        let error = DBusError(row.name, row.text)
        let message = GATTError(error, during: row.operation, peer: "roof", adapter: "hci0").error.message
        #expect(message.count > 25 && !message.contains("org.bluez.Error"))
        #expect(!message.contains("hardware"))
    }

    @Test(arguments: [
        ("org.bluez.Reason.Authentication", GATTError.Reason.bondStale, MeshError.Code.authenticationFailed),
        ("org.bluez.Reason.Remote", .linkLost, .linkClosedByPeer),
        ("org.bluez.Reason.Timeout", .linkLost, .connectionTimeout),
        ("org.bluez.Reason.Local", .linkLost, .linkClosed),
        ("org.bluez.Reason.Unknown", .linkLost, .linkClosed),
    ])
    func `why a link ended is taken from what was said before`(
        text: String, reason: GATTError.Reason, code: MeshError.Code
    ) {
        let error = GATTError(lossOf: "roof", reason: text)
        #expect(error.reason == reason && error.error.code == code)
    }
}
