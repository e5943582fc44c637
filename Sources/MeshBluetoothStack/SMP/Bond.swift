// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A key that encrypts a link (Core Specification 5.4, Vol 3 Part H §2.4.4).
public struct LongTermKey: Sendable, Hashable {
    /// 16 bytes in the order of the wire.
    public var key: [UInt8]
    /// 0 for keys of Secure Connections.
    public var random: UInt64
    /// 0 for keys of Secure Connections.
    public var diversifier: UInt16
    /// 7...16; the bytes beyond it are 0.
    public var size: UInt8

    public init(key: [UInt8], random: UInt64 = 0, diversifier: UInt16 = 0, size: UInt8 = 16) {
        self.key = key
        self.random = random
        self.diversifier = diversifier
        self.size = size
    }
}

/// What is kept of a pairing, so that the next link needs none.
public struct Bond: Sendable, Hashable {
    /// The address that stays: the one that the peer gave as its identity and has shown to be its own, else the one it
    /// connected with.
    public var peer: DeviceAddress
    /// Resolves the peer's private addresses; nil if it gave none.
    public var peerResolvingKey: [UInt8]?
    /// What this host encrypts with where it is the central. Legacy pairing makes it a key that the peripheral gave.
    public var centralKey: LongTermKey?
    /// What this host answers a key request with where it is the peripheral.
    public var peripheralKey: LongTermKey?
    /// A passkey protected the pairing. Encryption with these keys is no more than that.
    public var isAuthenticated: Bool
    public var isSecureConnections: Bool
    /// What was found of the peer's attributes. A new pairing begins without.
    public var database: RemoteDatabase?
    /// What this host has looked for it by: whoever else has the name is not it.
    public var name: String?

    public init(
        peer: DeviceAddress, peerResolvingKey: [UInt8]? = nil, centralKey: LongTermKey?, peripheralKey: LongTermKey?,
        isAuthenticated: Bool, isSecureConnections: Bool, database: RemoteDatabase? = nil, name: String? = nil
    ) {
        self.peer = peer
        self.peerResolvingKey = peerResolvingKey
        self.centralKey = centralKey
        self.peripheralKey = peripheralKey
        self.isAuthenticated = isAuthenticated
        self.isSecureConnections = isSecureConnections
        self.database = database
        self.name = name
    }

    /// The key for a key request as peripheral (Vol 4 Part E §7.7.65.5); nil if these keys are not what is asked for.
    public func key(random: UInt64, diversifier: UInt16) -> LongTermKey? {
        guard let peripheralKey, peripheralKey.random == random, peripheralKey.diversifier == diversifier else {
            return nil
        }
        return peripheralKey
    }
}
