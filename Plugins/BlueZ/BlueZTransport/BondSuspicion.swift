// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Which radios may have lost their bond, where bluetoothd does not say so. Pure.
///
/// The radio, or this side's kernel, ends a link whose encryption fails (HCI 0x05). BlueZ up to 5.78 reports that as any other
/// link that was aborted: `Device1.Connect` fails with `le-connection-abort-by-local`, each time, and 5.66 does not even tell
/// that `Connected` was true for a moment. Bad radio conditions look the same, but not so often in a row: where every second
/// link is aborted, one in a million reconnections comes to this limit.
struct BondSuspicion: Sendable {
    /// As many as two attempts with all their retries make.
    static let limit = 20

    /// Links in a row that were aborted, by device path.
    private var aborted: [String: Int] = [:]

    /// Whether the bond is suspected after this failure of a `Connect`.
    mutating func connectFailed(_ path: String, _ failure: BlueZFailure, isBonded: Bool) -> Bool {
        switch failure {
        case .linkAborted where isBonded:
            aborted[path, default: 0] += 1
            return aborted[path, default: 0] >= Self.limit
        // The way to the radio is bad.
        case .linkAborted, .peerSilent: lift(path)
        // Says nothing of the bond.
        default: break
        }
        return false
    }

    /// The device came up, or has no bond any more.
    mutating func lift(_ path: String) {
        aborted[path] = nil
    }
}
