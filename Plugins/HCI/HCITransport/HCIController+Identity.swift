// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
internal import MeshTransportAPI

/// Who devices are behind the addresses they use, and what is known of them.
extension HCIController {
    /// How many devices without a bond have their attributes kept.
    private static let databaseLimit = 64

    /// The address that stays, for a bonded device that uses a private one: controllers know few keys, or none, and none of
    /// a bond that was made after their bring-up.
    func identity(of address: DeviceAddress) -> DeviceAddress {
        resolver.identity(of: address, among: book.identities)
    }

    /// Whether a device may use another address than its own: it has given a key for them.
    func mayBePrivate(_ identity: DeviceAddress) -> Bool {
        bond(of: identity)?.peerResolvingKey != nil
    }

    /// A device with keys is looked for by this name, and nobody else by it from here on, after a restart too.
    func remember(_ name: String, of identity: DeviceAddress) {
        guard var bond = bond(of: identity), bond.name != name, let own = descriptor?.ownAddress else { return }
        bond.name = name
        book[own, identity] = bond
        saveBonds()
    }

    /// A link was paired: what is known by the address that it was made with belongs to the identity from here on. A bond that
    /// would take the place of another's, or of a better one, is not stored: false. Nobody but a person forgets those.
    func adopt(_ bond: Bond, from address: DeviceAddress, name: String?) -> Bool {
        var bond = bond
        bond.name = name
        if let stored = self.bond(of: bond.peer) {
            bond.name = name ?? stored.name
            let isAnother = identity(of: address) != bond.peer
            guard !isAnother, bond.isAuthenticated || !stored.isAuthenticated else {
                log(
                    .notice,
                    isAnother
                        ? "a device says that it is another, whose keys are kept; its own are not stored"
                        : "a device was paired without a pin, and keys with one are kept; the new ones are not stored",
                    [("controller", "\(port)"), ("address", "\(address)"), ("identity", "\(bond.peer)")])
                return false
            }
        }
        store(bond)
        databases[address] = nil
        for (name, peer) in found where peer == address { found[name] = bond.peer }
        return true
    }

    /// Keeps what was found of a device; nil forgets it. Without a bond only a hash is to be trusted: anybody can have the
    /// address next time.
    func store(_ database: RemoteDatabase?, of identity: DeviceAddress) {
        if var bond = bond(of: identity) {
            guard bond.database != database, let own = descriptor?.ownAddress else { return }
            bond.database = database
            book[own, identity] = bond
            saveBonds()
            return
        }
        guard case .hash? = database?.tag, !identity.isResolvablePrivate else {
            databases[identity] = nil
            return
        }
        if databases.count >= Self.databaseLimit { databases.removeAll() }
        databases[identity] = database
    }
}
