// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
public import MeshTransportAPI

/// Makes transports whose links a loaded module makes.
///
/// ``shutDown()`` must be called, and awaited, before the loop is: the module may have threads that call back.
public final class ModuleTransportFactory: TransportScanning {
    /// What the module says of itself. Only with ``TransportCapabilities/scanning`` does ``scan()`` work.
    public let descriptor: TransportDescriptor
    let module: any HostedModule
    let loop: EventLoop
    let instances: ModuleInstances
    let limits: ModuleSettings

    /// `log` gets what the module says on its own account; what it says for one device may go there, too. Runs nothing.
    public convenience init(
        module: LoadedModule, loop: EventLoop, log: LogSink, settings: ModuleSettings = ModuleSettings()
    ) {
        self.init(hosting: module, loop: loop, log: log, settings: settings)
    }

    /// The same for a module in processes of its own.
    public convenience init(
        module: IsolatedModule, loop: EventLoop, log: LogSink, settings: ModuleSettings = ModuleSettings()
    ) {
        self.init(hosting: module, loop: loop, log: log, settings: settings)
    }

    init(hosting module: any HostedModule, loop: EventLoop, log: LogSink, settings: ModuleSettings) {
        descriptor = module.descriptor
        self.module = module
        self.loop = loop
        limits = settings
        instances = ModuleInstances(module: module, loop: loop, log: log, settings: settings)
    }

    /// What is known of the module, and of what runs of it. On the loop's thread.
    public var status: ModuleStatus { module.status }

    /// Whether its links are made by this very module.
    public func isHosting(_ module: AnyObject) -> Bool { self.module === module }

    /// What the module itself has to say about options. One in a process of its own says it when it is asked
    /// (``ask(_:)``); options that it has not been asked about it judges when it gets them. Call it on the loop's thread, or
    /// before there is a loop.
    public func validate(_ options: OptionValues) -> [OptionIssue] {
        module.validate(options.written(as: descriptor.options))
    }

    /// Which device options mean, says the module. As ``validate(_:)``.
    public func identity(_ options: OptionValues) -> String? {
        module.identity(options.written(as: descriptor.options))
    }

    public func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport {
        ModuleTransport(module: module, settings: settings, limits: limits, instances: instances)
    }

    public func scan() async throws -> AsyncThrowingStream<ScanResult, any Error> { try await scan(around: []) }

    public func scan(
        around devices: [TransportSettings]
    ) async throws -> AsyncThrowingStream<ScanResult, any Error> {
        guard module.canScan else {
            throw MeshError(.notSupported, "module \(descriptor.name) cannot look for devices")
        }
        return try await LoopActor(loop).run { [instances] _ in
            try await instances.scan(["devices": .array(devices.map(\.json))])
        }
    }

    /// Ends every link, stops the module and frees its instances. Idempotent; no transport connects after it.
    public func shutDown() async {
        await LoopActor(loop).run { [instances] _ in await instances.shutDown() }
    }
}

extension OptionValues {
    /// The values as a user could have written them.
    func written(as table: [OptionSpec]) -> [String: JSONValue] {
        var written: [String: JSONValue] = [:]
        for spec in table {
            written[spec.name] =
                switch spec.kind {
                case .string: .string(string(spec.name))
                case .int: .int(Int64(int(spec.name)))
                case .bool: .bool(bool(spec.name))
                case .duration: .string(duration(spec.name).optionText)
                }
        }
        return written
    }
}
