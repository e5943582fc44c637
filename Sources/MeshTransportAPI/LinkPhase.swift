// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Where a link is in its life. A phase owns its timer and waiter: leaving it ends both.
///
/// The names are those of the BLE phase machine; other transports use the subset that fits them
/// (`waitingForBluetooth` then means waiting for the adapter or the network).
public enum LinkPhase: String, Sendable, Hashable, CaseIterable, Codable {
    case idle
    case waitingForBluetooth
    case connecting
    case discoveringServices
    case discoveringCharacteristics
    case subscribingToNotifications
    case discoveryComplete
    case connected
    case autoReconnecting
    case restoringState
    case disconnecting
}

/// What people are shown of a device.
public enum DeviceState: String, Sendable, Hashable, CaseIterable, Codable {
    /// No link, and none is being made at this moment.
    case disconnected
    /// An attempt is under way.
    case connecting
    /// The link is up, the session handshake has not ended.
    case connected
    /// The session is reading what it needs from the device.
    case syncing
    /// The device answers; clients are served.
    case ready
}
