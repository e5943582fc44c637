// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshCrypto

/// Private addresses that bonded devices can tell from others (Core Specification 5.4, Vol 6 Part B §1.3.2.2,
/// §1.3.2.3). Keys have 16 bytes in the order of the wire.
public enum ResolvableAddress {
    /// Whether the device with this key made the address.
    public static func matches(_ address: DeviceAddress, key: [UInt8]) throws(CryptoError) -> Bool {
        guard address.isResolvablePrivate else { return false }
        let bytes: [UInt8] = address.wireBytes.reversed()
        let hash = try PairingFunctions.ah(key: key.reversed(), random: Array(bytes.prefix(3)))
        return PairingCryptography.areEqual(hash, Array(bytes.suffix(3)))
    }

    /// The bond of the device that has this address, whether it is private or the device's own.
    public static func bond(for address: DeviceAddress, in bonds: [Bond]) throws(CryptoError) -> Bond? {
        for bond in bonds {
            if bond.peer == address { return bond }
            if let key = bond.peerResolvingKey, try matches(address, key: key) { return bond }
        }
        return nil
    }

    /// A private address of the device with this key, from 22 random bits.
    public static func make(key: [UInt8], random: UInt32) throws(CryptoError) -> DeviceAddress {
        let prand = random & 0x3F_FFFF | 0x40_0000
        let bytes = [UInt8(prand >> 16), UInt8(truncatingIfNeeded: prand >> 8), UInt8(truncatingIfNeeded: prand)]
        let hash = try PairingFunctions.ah(key: key.reversed(), random: bytes)
        return DeviceAddress((bytes + hash).reduce(0) { $0 << 8 | UInt64($1) }, .random)
    }
}
