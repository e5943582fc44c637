// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import MeshTransportAPI

extension MeshError.Code {
    /// The status of the module ABI that the host reads as this code again. The host has the other direction.
    var abiStatus: mh_status {
        switch self {
        case .adapterUnavailable: MH_EADAPTER
        case .authenticationFailed: MH_EAUTH
        case .cancelled: MH_ECANCELED
        case .characteristicNotFound: MH_ENOTDEVICE
        case .configurationInvalid: MH_ECONFIG
        case .connectionFailed: MH_EIO
        case .connectionRefused: MH_EREFUSED
        case .connectionTimeout: MH_ETIMEDOUT
        case .contended: MH_ECONTENDED
        case .frameTooLong: MH_ETOOLONG
        case .hostNotFound: MH_EHOST
        case .invalidArgument: MH_EINVAL
        case .linkClosed: MH_ECLOSED
        case .linkClosedByPeer: MH_EPEER
        case .notConnected: MH_ENOTCONN
        case .notSupported: MH_ENOSUP
        case .operationTimeout: MH_EDEADLINE
        case .permissionDenied: MH_EPERM
        case .queueFull: MH_EFULL
        case .resourceExhausted: MH_ENOMEM
        case .serviceUnavailable: MH_EUNAVAIL
        case .internalError: MH_EINTERNAL
        default: disposition == .permanent ? MH_EINVAL : MH_EIO  // the host's own codes, which no transport has
        }
    }
}

extension LinkPhase {
    /// The `MH_PHASE_…` value.
    var abiValue: UInt64 {
        switch self {
        case .idle: UInt64(MH_PHASE_IDLE)
        case .waitingForBluetooth: UInt64(MH_PHASE_WAITING_FOR_ADAPTER)
        case .connecting: UInt64(MH_PHASE_CONNECTING)
        case .discoveringServices: UInt64(MH_PHASE_DISCOVERING_SERVICES)
        case .discoveringCharacteristics: UInt64(MH_PHASE_DISCOVERING_CHARACTERISTICS)
        case .subscribingToNotifications: UInt64(MH_PHASE_SUBSCRIBING)
        case .discoveryComplete: UInt64(MH_PHASE_DISCOVERY_COMPLETE)
        case .connected: UInt64(MH_PHASE_CONNECTED)
        case .autoReconnecting: UInt64(MH_PHASE_AUTO_RECONNECTING)
        case .restoringState: UInt64(MH_PHASE_RESTORING_STATE)
        case .disconnecting: UInt64(MH_PHASE_DISCONNECTING)
        }
    }
}
