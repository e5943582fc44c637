// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What a device is, as far as its advertisement tells.
public enum DeviceKind: String, Sendable, Hashable, CaseIterable {
    /// A radio with MeshCore's companion firmware.
    case meshCoreCompanion = "meshcore-companion"
    /// Something else that carries bytes over Nordic's UART service.
    case nordicUART = "nordic-uart"
    case unknown = "unknown"

    /// `name` is the one that was heard, wherever it stood: where the advertisement has none, or a shortened one, it counts.
    /// Companion firmware advertises the UART service and a name that begins with `MeshCore` (SerialBLEInterface.cpp;
    /// `BLE_NAME_PREFIX` in main.cpp).
    public init(_ advertisement: AdvertisingData, name: String = "") {
        let names = [advertisement.localName?.text ?? "", name]
        if !advertisement.services.contains(.nordicUART) {
            self = .unknown
        } else if names.contains(where: { $0.hasPrefix("MeshCore") }) {
            self = .meshCoreCompanion
        } else {
            self = .nordicUART
        }
    }

    /// In words.
    public var described: String {
        switch self {
        case .meshCoreCompanion: "MeshCore companion"
        case .nordicUART: "Nordic UART"
        case .unknown: "unknown"
        }
    }
}
