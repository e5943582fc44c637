// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshConfig
internal import MeshLoop
internal import MeshModuleHost
internal import MeshRuntime
internal import MeshTransportAPI

/// The modules this daemon knows of: loads what a config names and nothing else, remembers what was refused and why.
///
/// Used on the loop's thread only.
final class ModuleCatalog {
    private let loop: EventLoop
    private let log: LogSink
    private var loader: ModuleLoader?
    private var factories: [String: ModuleTransportFactory] = [:]
    private var refusals: [String: ModuleStatus] = [:]
    /// Factories that were replaced because their module's file was; they serve old links until the end.
    private var replaced: [ModuleTransportFactory] = []
    /// A module that does not stop must not keep the daemon for more than this: SIGTERM ends it within 10 s.
    private let settings: ModuleSettings = {
        var settings = ModuleSettings()
        settings.stopDeadline = .seconds(3)
        return settings
    }()
    /// Told of each module that is loaded or refused for the first time.
    var onChange: ((ModuleStatus) -> Void)?

    init(loop: EventLoop, log: LogSink) {
        self.loop = loop
        self.log = log
    }

    /// What a config gets when it names a module.
    func lookUp(_ request: ModuleRequest) -> ModuleLookup {
        let loader = loader(request.searchPath)
        do throws(ModuleRefusal) {
            let module = try loader.load(request.name, path: request.path)
            if let factory = factories[request.name] {
                if factory.module === module { return .found(factory) }
                replaced.append(factory)
            }
            let factory = ModuleTransportFactory(module: module, loop: loop, log: log, settings: settings)
            factories[request.name] = factory
            refusals[request.name] = nil
            onChange?(ModuleStatus(module))
            return .found(factory)
        } catch {
            let status = loader.describe(request.name, path: request.path)
            if refusals[request.name] != status { onChange?(status) }
            refusals[request.name] = status
            return .unavailable(reason: error.description)
        }
    }

    /// The factory of a module that ``lookUp(_:)`` has found.
    func factory(_ name: String) throws(MeshError) -> any TransportFactory {
        guard let factory = factories[name] else {
            throw MeshError(.moduleRefused, refusals[name]?.reason ?? "module \"\(name)\" is not loaded")
        }
        return factory
    }

    /// A device is not this module's any more.
    func forget(_ device: String, of module: String) async {
        for factory in replaced + factories.values where factory.descriptor.name == module {
            await factory.forget(device)
        }
    }

    /// What is loaded, what was refused, and what else lies in the search folders, sorted by name.
    func statuses(searchPath: [String]) -> [ModuleStatus] {
        let loader = loader(searchPath)
        var statuses = refusals
        for factory in factories.values { statuses[factory.descriptor.name] = ModuleStatus(factory.module) }
        for (name, path) in loader.locator.installed() where statuses[name] == nil {
            statuses[name] = loader.status(of: name, path: path)
        }
        return statuses.values.sorted { $0.name < $1.name }
    }

    /// Stops every module. Returns when none can call back any more.
    func shutDown() async {
        let all = replaced + factories.values
        replaced = []
        factories = [:]
        for factory in all { await factory.shutDown() }
    }

    private func loader(_ searchPath: [String]) -> ModuleLoader {
        if let loader { return loader }
        let loader = ModuleLoader(locator: ModuleLocator(configured: searchPath))
        self.loader = loader
        return loader
    }
}

extension ModuleStatus {
    var json: JSONValue {
        [
            "name": .string(name), "path": path.map { .string($0) } ?? .null, "state": .string(state.rawValue),
            "reason": reason.map { .string($0) } ?? .null, "version": version.map { .string($0) } ?? .null,
            "vendor": vendor.map { .string($0) } ?? .null, "license": license.map { .string($0) } ?? .null,
            "abi": abi.map { .string($0) } ?? .null, "capabilities": .array(capabilities.map { .string($0) }),
        ]
    }
}
