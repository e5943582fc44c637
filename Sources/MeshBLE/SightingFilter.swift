// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// Lets through what is news in a stream of sightings: a Bluetooth host hears every advertisement, several a second of each
/// device. Pure.
public struct SightingFilter: Sendable {
    /// A change of signal strength below this is noise.
    private static let steps = 4
    /// How often a device is told of at least while it is heard: whoever shows its age needs that.
    private static let refresh = Duration.seconds(5)
    /// Addresses that change every few minutes must not fill the memory of a scan that runs for ever.
    private static let limit = 4_096

    private var told: [String: (result: ScanResult, at: Duration)] = [:]

    public init() {}

    /// Whether the consumer is to hear of it.
    public mutating func isNews(_ result: ScanResult, now: Duration) -> Bool {
        if let (last, at) = told[result.address], now - at < Self.refresh, last.name == result.name,
            last.advertisement == result.advertisement, abs((last.rssi ?? 0) - (result.rssi ?? 0)) < Self.steps
        {
            return false
        }
        if told.count >= Self.limit { told = [:] }
        told[result.address] = (result, now)
        return true
    }
}
