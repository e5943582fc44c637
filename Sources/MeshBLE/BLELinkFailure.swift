// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI
internal import MeshWire

/// Why an attempt failed or a link ended, as ``BLELinkStateMachine`` sees it.
struct BLELinkFailure: Sendable {
    enum Cause: Sendable {
        case bluetooth(BluetoothState)
        /// The phase had no end within its deadline.
        case timedOut(after: Duration)
        case operation(GATTError)
        case linkLost(GATTError)
        /// The device has not got what the profile needs. `isNew`: it had, on an earlier link.
        case missing(BluetoothUUID, isNew: Bool)
        case authentication(BLESecurityPolicy.Failure)
        /// Writes without acknowledgement, one after the other.
        case writesTimedOut(after: Duration)
        /// The device refused a write; the next attempt pairs anew.
        case pairingNeeded
        /// The caller gave up, or the link was ended by request.
        case requested
        /// The driver said something that cannot be.
        case inconsistent
    }

    var cause: Cause
    /// The phase it happened in.
    var phase: LinkPhase
    /// What was being done there, if something was.
    var operation: BLEOperation?
    /// Set when attempts have found nobody for a minute or more.
    var unheardFor: Duration?

    init(_ cause: Cause, phase: LinkPhase, operation: BLEOperation? = nil, unheardFor: Duration? = nil) {
        self.cause = cause
        self.phase = phase
        self.operation = operation
        self.unheardFor = unheardFor
    }

    var code: MeshError.Code {
        switch cause {
        case .bluetooth(let state): state.error(adapter: "")?.code ?? .adapterUnavailable
        case .timedOut: .connectionTimeout
        case .operation(let error): Self.code(of: error)
        case .linkLost(let error): Self.code(ofLoss: error, wasUp: phase == .connected)
        case .missing(_, let isNew): isNew ? .connectionFailed : .characteristicNotFound
        case .authentication: .authenticationFailed
        case .writesTimedOut: .operationTimeout
        case .pairingNeeded: .linkClosed
        case .requested: .cancelled
        case .inconsistent: .internalError
        }
    }

    /// Whether trying again makes no sense before a person has changed something.
    var isFinal: Bool { code.disposition != .transient }

    private static func code(of error: GATTError) -> MeshError.Code {
        switch error.reason {
        // Nobody here cancelled it.
        case .cancelled, .linkLost: .connectionFailed
        case .insufficientSecurity, .bondStale, .pairingFailed: .authenticationFailed
        case .inUse: .contended
        case .notSupported: .characteristicNotFound
        case .bluetoothUnavailable, .unreachable, .bondSuspect, .other: error.error.code
        }
    }

    private static func code(ofLoss error: GATTError, wasUp: Bool) -> MeshError.Code {
        switch error.error.code {
        case .adapterUnavailable, .contended: error.error.code
        case .linkClosedByPeer where wasUp: .linkClosedByPeer
        default: wasUp ? .linkClosed : .connectionFailed
        }
    }
}

/// Why a write was refused or failed while the link stays.
enum BLEWriteFailure: Sendable {
    case notConnected
    case empty
    case tooLong(limit: Int)
    case queueFull
    /// The caller's task was cancelled.
    case cancelled
    /// No acknowledgement in time; it may have arrived.
    case timedOut(after: Duration, endsLink: Bool)
    case failed(GATTError)
    /// The link ended first.
    case linkEnded(BLELinkFailure)
}
