// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The device at the other end of the transport under test, led by the rules.
///
/// One peer serves one transport at a time and accepts a new connection after each end. A device that cannot do
/// something leaves it out of ``abilities``; rules that need it are reported as skipped.
public protocol ConformancePeer: Sendable {
    var abilities: ConformanceAbilities { get }

    /// Sends one frame over the current connection; waits for the connection if there is none yet.
    func sendFrame(_ payload: [UInt8]) async throws

    /// Sends the start of a frame and not its end.
    func sendHalfFrame() async throws

    /// The next frame that the transport sent, over any connection.
    func receiveFrame() async throws -> [UInt8]

    /// Ends the connection in an orderly way.
    func close() async throws

    /// Ends the connection abruptly.
    func reset() async throws

    /// From now on connection attempts are neither accepted nor refused.
    func holdConnections() async throws

    /// Undoes ``holdConnections()``.
    func acceptConnections() async throws
}

/// What a ``ConformancePeer`` can do.
public struct ConformanceAbilities: OptionSet, Sendable {
    public let rawValue: Int

    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// `sendFrame` sends any payload.
    public static let sending = ConformanceAbilities(rawValue: 1 << 0)
    /// `receiveFrame` gives what the transport sent.
    public static let receiving = ConformanceAbilities(rawValue: 1 << 1)
    /// `sendHalfFrame`.
    public static let halfFrames = ConformanceAbilities(rawValue: 1 << 2)
    /// `close`.
    public static let closing = ConformanceAbilities(rawValue: 1 << 3)
    /// `reset`.
    public static let resetting = ConformanceAbilities(rawValue: 1 << 4)
    /// `holdConnections` and `acceptConnections`.
    public static let holding = ConformanceAbilities(rawValue: 1 << 5)
    /// It gives back every frame, without being asked to.
    public static let echoing = ConformanceAbilities(rawValue: 1 << 6)
}

/// A peer for devices that nothing can be asked of: only the rules that need a link and nothing else are checked, or, if
/// the device is one that gives back every frame, those that need that.
public struct SilentPeer: ConformancePeer {
    public let abilities: ConformanceAbilities

    public init(isEchoing: Bool = false) {
        abilities = isEchoing ? .echoing : []
    }

    public func sendFrame(_ payload: [UInt8]) async throws { throw MissingAbility() }
    public func sendHalfFrame() async throws { throw MissingAbility() }
    public func receiveFrame() async throws -> [UInt8] { throw MissingAbility() }
    public func close() async throws { throw MissingAbility() }
    public func reset() async throws { throw MissingAbility() }
    public func holdConnections() async throws { throw MissingAbility() }
    public func acceptConnections() async throws { throw MissingAbility() }
}

/// A peer was asked for what its `abilities` do not name.
public struct MissingAbility: Error {
    public init() {}
}
