// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// What a program that has no other host around it is told. See ``BLETransport``.
struct BLEHandlers {
    var disconnected: (@Sendable (MeshError?) -> Void)?
    var reconnected: (@Sendable () -> Void)?
    var autoReconnecting: (@Sendable (MeshError?) -> Void)?
    var bluetoothState: (@Sendable (BluetoothState) -> Void)?
    var bluetoothPoweredOn: (@Sendable () -> Void)?
}

extension BLETransport {
    /// The link ended and is not made anew by itself; nil when that was asked for. Not called for a `connect` that throws.
    public func setDisconnectionHandler(_ handler: (@Sendable (MeshError?) -> Void)?) {
        handlers.disconnected = handler
    }

    /// A lost link is back. ``BLETransport/receivedData`` is that of the new link already, so no frame of it is missed.
    public func setReconnectionHandler(_ handler: (@Sendable () -> Void)?) {
        handlers.reconnected = handler
    }

    /// The link was lost and is being made anew.
    public func setAutoReconnectingHandler(_ handler: (@Sendable (MeshError?) -> Void)?) {
        handlers.autoReconnecting = handler
    }

    /// What Bluetooth is like, when that is first known and at each change. Observed from `connect` until
    /// `disconnect`; where it was away then, until it is back.
    public func setBluetoothStateChangeHandler(_ handler: (@Sendable (BluetoothState) -> Void)?) {
        handlers.bluetoothState = handler
    }

    /// Bluetooth can be used again.
    public func setBluetoothPoweredOnHandler(_ handler: (@Sendable () -> Void)?) {
        handlers.bluetoothPoweredOn = handler
    }
}
