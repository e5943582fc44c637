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
    /// Those of the modules that run in processes of their own.
    private var isolated: [String: IsolatedModule] = [:]
    private var refusals: [String: ModuleStatus] = [:]
    /// Factories that were replaced because their module's file was; they serve old links until the end.
    private var replaced: [ModuleTransportFactory] = []
    /// Modules whose devices are to change to the new factory: what runs in a process can be replaced while the daemon runs.
    private(set) var outdated: Set<String> = []
    /// A module that does not stop must not keep the daemon for more than this: SIGTERM ends it within 10 s.
    private let settings: ModuleSettings = {
        var settings = ModuleSettings()
        settings.stopDeadline = .seconds(3)
        return settings
    }()
    /// Told of each module that is loaded or refused for the first time.
    var onChange: ((ModuleStatus) -> Void)?
    /// Told of each process of a module that ended without being asked to.
    var onCrash: ((ModuleCrash) -> Void)?

    init(loop: EventLoop, log: LogSink) {
        self.loop = loop
        self.log = log
    }

    /// What a config gets when it names a module. One in a process of its own is not there before `inquiry` knows it, and
    /// its word on options is that of `inquiry`. Changes nothing: what was found counts from ``accept(_:)`` on.
    func lookUp(_ request: ModuleRequest, _ inquiry: ModuleInquiry) -> ModuleLookup {
        let locator = loader(request.searchPath).locator
        do throws(ModuleRefusal) {
            return try look(request, locator, inquiry)
        } catch {
            let path = request.command?.first ?? request.path ?? locator.path(ofModule: request.name)
            inquiry.findings[request.name] = .refused(ModuleStatus(request.name, path: path, refusal: error))
            return .unavailable(reason: error.description)
        }
    }

    private func look(
        _ request: ModuleRequest, _ locator: ModuleLocator, _ inquiry: ModuleInquiry
    ) throws(ModuleRefusal) -> ModuleLookup {
        guard let factory = try factory(for: request, locator, inquiry) else {
            return .unavailable(reason: "it has not said what it is")
        }
        return .found(inquiry.asking(factory))
    }

    /// The modules are from now on as the reading of a config has found them.
    func accept(_ inquiry: ModuleInquiry) {
        for (name, finding) in inquiry.takeFindings() {
            switch finding {
            case .refused(let status):
                if refusals[name] != status { onChange?(status) }
                refusals[name] = status
            case .found(let factory, let module):
                if factories[name] === factory { continue }
                if let before = factories[name] {
                    replaced.append(before)
                    if before.status.isolation == .process || factory.status.isolation == .process {
                        outdated.insert(name)
                    }
                }
                factories[name] = factory
                isolated[name] = module
                refusals[name] = nil
                onChange?(factory.status)
            }
        }
    }

    /// The reading was in vain, and everything stays as it is: ends what was begun for it.
    func discard(_ inquiry: ModuleInquiry) async {
        for (name, finding) in inquiry.takeFindings() {
            guard case .found(let factory, _) = finding, factories[name] !== factory else { continue }
            await factory.shutDown()
        }
    }

    /// The factory of a module, for one who uses it: that in use, or else one that is asked what it is beside the loop. A
    /// refusal is told and not kept: whoever asked may have mistyped, and no config names it.
    func factory(
        for request: ModuleRequest, isolation: isolated (any Actor)? = #isolation
    ) async throws(MeshError) -> any TransportFactory {
        if let factory = factories[request.name] { return factory }
        let inquiry = ModuleInquiry()
        while true {
            let lookup: ModuleLookup
            do throws(ModuleRefusal) {
                lookup = try look(request, loader(request.searchPath).locator, inquiry)
            } catch {
                lookup = .unavailable(reason: error.description)
            }
            guard let questions = inquiry.takeQuestions() else {
                if case .unavailable(let reason) = lookup {
                    throw MeshError(.moduleRefused, "module \"\(request.name)\" is not available: \(reason)")
                }
                accept(inquiry)
                return try factory(request.name)
            }
            guard let answers = await questions.ask(beside: loop) else {
                throw MeshError(.cancelled, "module \"\(request.name)\" is not waited for any more")
            }
            inquiry.learn(answers)
        }
    }

    /// The factory of a module as it lies there now: that which there is, or a new one. Nil for a module that is still to be
    /// asked what it is.
    private func factory(
        for request: ModuleRequest, _ locator: ModuleLocator, _ inquiry: ModuleInquiry
    ) throws(ModuleRefusal) -> ModuleTransportFactory? {
        let name = request.name
        var known: [(factory: ModuleTransportFactory, module: IsolatedModule?)] = []
        if case .found(let factory, let module)? = inquiry.findings[name] { known.append((factory, module)) }
        if let factory = factories[name] { known.append((factory, isolated[name])) }
        guard let launch = try launch(request, locator) else {
            let module = try loader(request.searchPath).load(name, path: request.path, pin: request.pin)
            let factory =
                known.first { $0.factory.isHosting(module) }?.factory
                ?? ModuleTransportFactory(module: module, loop: loop, log: log, settings: settings)
            inquiry.findings[name] = .found(factory, nil)
            return factory
        }
        for case (let factory, let module?) in known where factory.isHosting(module) && module.isCurrent(launch) {
            inquiry.findings[name] = .found(factory, module)
            return factory
        }
        guard let module = try inquiry.introduced(ModuleInquiry.Stranger(name: name, launch: launch)) else {
            return nil
        }
        module.onCrash { [weak self] in self?.onCrash?($0) }
        let factory = ModuleTransportFactory(module: module, loop: loop, log: log, settings: settings)
        inquiry.findings[name] = .found(factory, module)
        return factory
    }

    /// How a process of the module is started; nil: it is loaded into this one.
    private func launch(_ request: ModuleRequest, _ locator: ModuleLocator) throws(ModuleRefusal) -> ModuleLaunch? {
        let limit = request.memoryLimit > 0 ? request.memoryLimit : nil
        if let command = request.command {
            return ModuleLaunch(.command(command), pin: request.pin, memoryLimit: limit)
        }
        var path = request.path
        if path == nil { path = try locator.existingPath(ofModule: request.name) }
        guard let path else { return nil }
        let rule: ModuleIsolation = locator.isShipped(request.name, path: path) ? .inProcess : .process
        guard request.isolation ?? rule == .process else { return nil }
        return ModuleLaunch(.library(name: request.name, path: path), pin: request.pin, memoryLimit: limit)
    }

    /// The devices of ``outdated`` modules have changed to the new factories: ends the old ones.
    func endOutdated() async {
        let ended = replaced.filter { outdated.contains($0.descriptor.name) }
        replaced.removeAll { factory in ended.contains { $0 === factory } }
        outdated = []
        for factory in ended { await factory.shutDown() }
    }

    /// Lets a module that is in quarantine, or waits after a crash, be started again; all of them without a name. Returns
    /// their names.
    func reset(_ name: String?) throws(MeshError) -> [String] {
        if let name, isolated[name] == nil {
            throw MeshError(
                .invalidArgument,
                factories[name] == nil
                    ? "no module \"\(name)\" is loaded" : "module \"\(name)\" runs in the daemon's own process")
        }
        let names = name.map { [$0] } ?? isolated.keys.sorted()
        for name in names { isolated[name]?.reset() }
        return names
    }

    /// The factory of a module that ``lookUp(_:_:)`` has found.
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
        for factory in factories.values { statuses[factory.descriptor.name] = factory.status }
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
        // At one time: each may take as long as a module has to stop.
        let executor = loop.taskExecutor
        await withTaskGroup(of: Void.self) { group in
            for factory in all { group.addTask(executorPreference: executor) { await factory.shutDown() } }
        }
    }

    private func loader(_ searchPath: [String]) -> ModuleLoader {
        if let loader { return loader }
        let loader = ModuleLoader(locator: ModuleLocator(configured: searchPath))
        self.loader = loader
        return loader
    }
}

extension ModuleRequest {
    /// The digest that its file must have; the config has judged its form.
    var pin: ModuleDigest? { sha256.flatMap(ModuleDigest.init) }
}

extension ModuleStatus {
    var json: JSONValue {
        [
            "name": .string(name), "path": path.map { .string($0) } ?? .null, "state": .string(state.rawValue),
            "reason": reason.map { .string($0) } ?? .null, "version": version.map { .string($0) } ?? .null,
            "vendor": vendor.map { .string($0) } ?? .null, "license": license.map { .string($0) } ?? .null,
            "abi": abi.map { .string($0) } ?? .null, "capabilities": .array(capabilities.map { .string($0) }),
            "isolation": isolation.map { .string($0.rawValue) } ?? .null,
            "pids": .array(pids.map { .int(Int64($0)) }), "restarts": .int(Int64(restarts)),
            "crashes": .int(Int64(crashes)), "last_crash": lastCrash.map { .string($0) } ?? .null,
        ]
    }
}
