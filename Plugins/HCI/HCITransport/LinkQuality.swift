// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
internal import MeshTransportAPI

/// How the links of a controller end, which tells a noisy place from radios that are switched off.
///
/// A radio that goes out of range ends a link in silence once, and is then not found. Links that come up again and again
/// and end in silence are disturbed: by distance, by USB 3, or by the WiFi that shares an antenna with the controller.
struct LinkQuality {
    /// How long an end counts.
    static let window = Duration.seconds(3_600)
    /// So many within it are worth telling.
    static let threshold = 3

    /// When links ended in silence; the last few.
    private var silences: [Duration] = []
    /// All of them since the start.
    private(set) var silentEnds: UInt64 = 0
    private(set) var ends: UInt64 = 0

    /// A link has ended for this reason.
    mutating func linkEnded(_ reason: HCIStatus, now: Duration) {
        ends += 1
        // The supervision timeout, and a link layer that stopped answering.
        guard reason == .connectionTimeout || reason == .responseTimeout else { return }
        silentEnds += 1
        silences.append(now)
        if silences.count > 64 { silences.removeFirst() }
    }

    /// What `meshhost doctor` says of it; nil while nothing is wrong.
    func finding(_ adapter: String, now: Duration) -> Finding? {
        let recent = silences.count { now - $0 < Self.window }
        guard recent >= Self.threshold else { return nil }
        return Finding(
            .note, adapter, "\(recent) links have ended in silence within the last hour, of \(ends) that ended in all",
            advice: "bring radio and adapter closer together; an adapter on the board of a Raspberry Pi shares its "
                + "antenna with WiFi: use 5 GHz or a cable for the network, or a dongle away from USB 3")
    }
}
