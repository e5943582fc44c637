// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshBluetoothStack

/// The keys of devices that were paired with.
extension HCIController {
    func store(_ bond: Bond) {
        bonds[bond.peer] = bond
        attempts.pairingSucceeded(bond.peer)
    }

    /// Forgets a device, and ends the link to it.
    func removeBond(_ target: BLETarget) async {
        guard case .address(let address) = target else { return }
        for peer in bonds.keys where address.matches(BLEAddress(peer)) { bonds[peer] = nil }
        for link in links.values where address.matches(BLEAddress(link.connection.peer)) { await link.close() }
    }
}
