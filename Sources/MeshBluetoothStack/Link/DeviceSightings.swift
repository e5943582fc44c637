// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// What scanning has found out of devices: advertisements and scan responses put together (Core Specification 5.4, Vol
/// 3 Part C §11).
///
/// Advertisements come from anybody, so there is a limit; beyond it the device that was not heard for longest is
/// forgotten.
public struct DeviceSightings: Sendable {
    /// A device as far as it was heard.
    public struct Sighting: Sendable, Hashable {
        public var address: DeviceAddress
        /// The controller resolved the address: it is an identity.
        public var isResolved: Bool
        /// A link can be made.
        public var isConnectable = false
        /// As it advertises, whole or shortened; text of strangers.
        public var name: String?
        public var services: [BluetoothUUID] = []
        /// dBm, when it was last heard.
        public var rssi: Int8?
        public var lastHeard: Duration
    }

    private let limit: Int
    private var sightings: [DeviceAddress: Sighting] = [:]
    /// Data of extended advertisements whose rest is to come in the next report.
    private var partial: [DeviceAddress: [UInt8]] = [:]
    /// What one chain of extended advertisements has at most (Vol 6 Part B §2.3.4.9).
    private static let longestData = 1650

    public init(limit: Int = 256) {
        precondition(limit > 0)
        self.limit = limit
    }

    public var all: [Sighting] { Array(sightings.values) }

    public subscript(address: DeviceAddress) -> Sighting? { sightings[address] }

    /// Takes a report; returns what is known of the device now, or nil while its data is not whole.
    public mutating func reportReceived(_ report: AdvertisingReport, now: Duration) -> Sighting? {
        var data = report.data
        if let start = partial.removeValue(forKey: report.address) { data = start + data }
        if report.kind.contains(.incomplete), data.count < Self.longestData, partial.count < limit {
            partial[report.address] = data
            return nil
        }
        var sighting =
            sightings[report.address]
            ?? Sighting(address: report.address, isResolved: report.isResolved, lastHeard: now)
        sighting.lastHeard = now
        sighting.rssi = report.rssi ?? sighting.rssi
        // A scan response says nothing of it.
        if !report.kind.contains(.scanResponse) { sighting.isConnectable = report.kind.contains(.connectable) }
        let (advertised, _) = AdvertisingData.decode(data)
        if let name = advertised.localName, sighting.name == nil || !name.isShortened { sighting.name = name.text }
        for service in advertised.services where !sighting.services.contains(service) {
            if sighting.services.count < 64 { sighting.services.append(service) }
        }
        sightings[report.address] = sighting
        forgetOldest(but: report.address)
        return sighting
    }

    /// Forgets everything: a new search begins.
    public mutating func removeAll() {
        sightings.removeAll()
        partial.removeAll()
    }

    private mutating func forgetOldest(but address: DeviceAddress) {
        guard sightings.count > limit,
            let oldest = sightings.values.filter({ $0.address != address }).min(by: { $0.lastHeard < $1.lastHeard })
        else { return }
        sightings[oldest.address] = nil
    }
}
