// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import MeshTransportAPI

/// The statuses of the module ABI as the host's errors. The module kit has the other direction.
extension MeshError {
    /// The status of links whose module has died. No module reports it: the ABI has no such number.
    static let moduleFailedStatus: mh_status = .min

    /// What a negative status means; `detail` is the module's text for people, if it gave one.
    init(status: mh_status, detail: String = "", module: String) {
        guard let (code, message) = Self.meaning(of: status) else {
            self.init(
                .moduleFailed, detail.isEmpty ? "module \(module) reported the unknown status \(status)" : detail)
            return
        }
        self.init(code, detail.isEmpty ? message : detail)
    }

    private static func meaning(of status: mh_status) -> (code: Code, message: String)? {
        switch status {
        case MH_ECLOSED: (.linkClosed, "the link is closed")
        case MH_EINVAL: (.invalidArgument, "the module does not accept the argument")
        case MH_ENOSUP: (.notSupported, "the module cannot do this")
        case MH_EIO: (.connectionFailed, "the connection failed")
        case MH_EAUTH: (.authenticationFailed, "the device refused the PIN, key or token; check it in the config")
        case MH_ENOMEM: (.resourceExhausted, "no memory, descriptors or slots are left")
        case MH_ETIMEDOUT: (.connectionTimeout, "the device did not answer within the deadline")
        case MH_EREFUSED: (.connectionRefused, "the device refuses the connection; nothing listens there")
        case MH_EHOST: (.hostNotFound, "the host name has no address")
        case MH_EPEER: (.linkClosedByPeer, "the device closed the link")
        case MH_EADAPTER: (.adapterUnavailable, "the adapter or the network is off or gone")
        case MH_ECONTENDED: (.contended, "another host is using this device")
        case MH_EPERM: (.permissionDenied, "the operating system refuses")
        case MH_ETOOLONG: (.frameTooLong, "the frame is longer than the link can carry")
        case MH_ECANCELED: (.cancelled, "the operation was cancelled")
        case MH_ENOTCONN: (.notConnected, "there is no link")
        case MH_EDEADLINE: (.operationTimeout, "the device did not answer in time")
        case MH_EFULL: (.queueFull, "a queue has no room")
        case MH_EUNAVAIL: (.serviceUnavailable, "a service that the module needs is not running")
        case MH_ENOTDEVICE: (.characteristicNotFound, "the device lacks the service that the link needs")
        case MH_ECONFIG: (.configurationInvalid, "an option is not acceptable")
        case MH_EINTERNAL: (.internalError, "a fault in the module")
        default: nil
        }
    }
}

extension LinkPhase {
    /// The phase of an `MH_PHASE_…` value.
    init?(abiValue: UInt64) {
        switch Int32(exactly: abiValue) {
        case MH_PHASE_IDLE: self = .idle
        case MH_PHASE_WAITING_FOR_ADAPTER: self = .waitingForBluetooth
        case MH_PHASE_CONNECTING: self = .connecting
        case MH_PHASE_DISCOVERING_SERVICES: self = .discoveringServices
        case MH_PHASE_DISCOVERING_CHARACTERISTICS: self = .discoveringCharacteristics
        case MH_PHASE_SUBSCRIBING: self = .subscribingToNotifications
        case MH_PHASE_DISCOVERY_COMPLETE: self = .discoveryComplete
        case MH_PHASE_CONNECTED: self = .connected
        case MH_PHASE_AUTO_RECONNECTING: self = .autoReconnecting
        case MH_PHASE_RESTORING_STATE: self = .restoringState
        case MH_PHASE_DISCONNECTING: self = .disconnecting
        default: return nil
        }
    }
}

extension LogLevel {
    /// The nearest level of a syslog level; emergencies of a module are errors of the host.
    init(abiValue: Int32) {
        self = LogLevel(rawValue: min(max(abiValue, LogLevel.error.rawValue), LogLevel.debug.rawValue)) ?? .info
    }
}
