// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Tells who is behind a private address, where the controller does not (Core Specification 5.4, Vol 6 Part B §1.3.2.3).
///
/// A device has its private address for some minutes and is heard many times a second, so what was found out is kept, for
/// as many addresses as there is room for: they come from anybody.
public struct IdentityResolver: Sendable {
    /// Keys have 16 bytes in the order of the wire.
    public typealias Identity = (address: DeviceAddress, key: [UInt8])

    private let limit: Int
    private var keys: [DeviceAddress: [UInt8]] = [:]
    /// By the private address; nil for those of strangers.
    private var known: [DeviceAddress: DeviceAddress?] = [:]

    public init(limit: Int = 256) {
        precondition(limit > 0)
        self.limit = limit
    }

    /// The device's own address where it is one of `identities`, else the address as it is. One whose hash cannot be
    /// computed is a stranger's.
    public mutating func identity(of address: DeviceAddress, among identities: [Identity]) -> DeviceAddress {
        guard address.isResolvablePrivate else { return address }
        let current = Dictionary(identities.map { ($0.address, $0.key) }) { _, last in last }
        if current != keys {
            keys = current
            known.removeAll()
        }
        if let found = known[address] { return found ?? address }
        let identity = identities.first { (try? ResolvableAddress.matches(address, key: $0.key)) ?? false }?.address
        if known.count >= limit { known.removeAll() }
        known[address] = .some(identity)
        return identity ?? address
    }
}
