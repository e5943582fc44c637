// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Static facts about a kind of transport.
public struct TransportDescriptor: Sendable, Hashable {
    /// The module name a config uses, such as `tcp`: `^[a-z][a-z0-9_-]{0,62}$`.
    public var name: String
    /// Its own version, such as `1.0.0`.
    public var version: String
    public var vendor: String
    /// An SPDX expression.
    public var license: String
    /// What the transport can do beyond ``MeshTransport``.
    public var capabilities: TransportCapabilities
    /// Every option a device of this kind may have.
    public var options: [OptionSpec]

    public init(
        name: String, version: String, vendor: String, license: String, capabilities: TransportCapabilities = [],
        options: [OptionSpec]
    ) {
        self.name = name
        self.version = version
        self.vendor = vendor
        self.license = license
        self.capabilities = capabilities
        self.options = options
    }
}

/// What a transport can do beyond ``MeshTransport``. The bits are those of the module ABI (`MH_CAP_…` in
/// `meshhost_transport.h`); those not named here concern the boundary only.
public struct TransportCapabilities: OptionSet, Sendable, Hashable {
    public let rawValue: UInt64

    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// The factory is a ``TransportScanning``.
    public static let scanning = TransportCapabilities(rawValue: 1 << 0)
    /// Links need pairing before use.
    public static let pairing = TransportCapabilities(rawValue: 1 << 2)
    /// Several read commands may be under way at once on its links.
    public static let pipelinedReads = TransportCapabilities(rawValue: 1 << 4)
    /// Links go through the IP network: they wait while it is away.
    public static let network = TransportCapabilities(rawValue: 1 << 6)
    /// Links go through a local adapter, which makes one at a time: that of the option `adapter`, else one for all.
    public static let adapter = TransportCapabilities(rawValue: 1 << 7)
    /// `connect` always ends by itself, with an error that says what was too slow.
    public static let ownDeadlines = TransportCapabilities(rawValue: 1 << 8)
}

/// What code hands to a new transport: which device, its options, and where its reports go.
public struct TransportSettings: Sendable {
    /// The configured device name, such as `roof`.
    public var device: String
    /// The validated options.
    public var options: OptionValues
    /// The options as the user wrote them, for transports behind the module boundary.
    public var written: [String: JSONValue]
    public var environment: TransportEnvironment

    public init(
        device: String, options: OptionValues, written: [String: JSONValue], environment: TransportEnvironment
    ) {
        self.device = device
        self.options = options
        self.written = written
        self.environment = environment
    }
}

/// Where a transport reports to. Both sinks may be called from any thread and return at once.
public struct TransportEnvironment: Sendable {
    public var log: LogSink
    public var linkEvents: @Sendable (LinkEvent) -> Void

    public init(log: LogSink, linkEvents: @escaping @Sendable (LinkEvent) -> Void) {
        self.log = log
        self.linkEvents = linkEvents
    }
}

/// Makes transports of one kind: what a module exports and what `TransportRegistry` holds.
public protocol TransportFactory: Sendable {
    var descriptor: TransportDescriptor { get }

    /// Checks options beyond what the table says, without touching the outside world. Default: nothing more to check.
    func validate(_ options: OptionValues) -> [OptionIssue]

    /// Which device these options, which have no issues, mean: the same text for two devices that are one, however they are
    /// spelt. Touches nothing of the outside world. Default: nil, for devices of which several may be the same.
    func identity(_ options: OptionValues) -> String?

    /// A transport that is not connected yet. Opens nothing.
    func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport
}

extension TransportFactory {
    public func validate(_ options: OptionValues) -> [OptionIssue] { [] }

    public func identity(_ options: OptionValues) -> String? { nil }

    /// The option table and ``validate(_:)`` in one: what a config checker calls. All that is wrong is found at once.
    public func check(_ written: [String: JSONValue]) -> (values: OptionValues, issues: [OptionIssue]) {
        let (values, issues) = descriptor.options.resolve(written)
        return (values, issues.joined(by: validate(values)))
    }
}

/// A factory that holds something for its transports, such as a connection to a service.
public protocol TransportClosing: TransportFactory {
    /// Called when no transport is used any more; none is made after it. Returns when nothing of the factory and of its
    /// transports is left on the loop.
    func close() async
}

/// A factory that keeps something of a device from one transport to the next.
public protocol TransportForgetting: TransportFactory {
    /// The device of this name is not this factory's any more: what is kept of it goes, now or with its last link. Keys stay.
    func forget(_ device: String) async
}

/// A factory that can look for devices.
public protocol TransportScanning: TransportFactory {
    /// Devices as they are seen, duplicates included, until the consumer stops. Throws if the medium is not usable; the stream
    /// does when it ceases to be, and where that is known only then.
    func scan() async throws -> AsyncThrowingStream<ScanResult, any Error>

    /// The same for a factory that has to be told where to look: through what these devices go, and with links that there are.
    /// Default: what is configured makes no difference.
    func scan(around devices: [TransportSettings]) async throws -> AsyncThrowingStream<ScanResult, any Error>
}

extension TransportScanning {
    public func scan(around devices: [TransportSettings]) async throws -> AsyncThrowingStream<ScanResult, any Error> {
        try await scan()
    }
}

/// A transport that can tell about its inside.
public protocol TransportDiagnosing: MeshTransport {
    /// An object without secrets: counters, peers, last errors.
    func diagnostics() async -> JSONValue
}
