// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshCrypto

/// Keys of regions, within which floods can be kept.
public enum RegionKey {
    /// How many bytes a key has.
    public static let byteCount = 16

    /// The key of a region that has it from its name, such as `#alps`: the first 16 bytes of the SHA-256 of the name with
    /// its `#`, which may be left out here (firmware src/helpers/RegionMap.cpp).
    public static func derived(from name: String) throws(CryptoError) -> Data {
        let name = name.hasPrefix("#") ? name : "#" + name
        return Data(try SHA256.digest(of: Array(name.utf8)).prefix(byteCount))
    }
}
