// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshConfig
internal import MeshLoop
internal import MeshTransportAPI

/// What modules can be asked beside links: which devices are around, pairing, and whether all that links need is there.
///
/// The same for the daemon and for a command that no daemon answers. Used on the loop's thread only.
struct Surroundings {
    let catalog: ModuleCatalog
    let config: HostConfig
    let loop: EventLoop
    let log: LogSink

    /// The module of devices that are not configured.
    static let radioModule = "bluez"

    private var secrets: SecretSource { SecretSource(environment: ProcessInfo.processInfo.environment) }

    // MARK: Modules

    /// A module by its name. Throws what `meshhost modules` says of it.
    func factory(_ name: String) throws(MeshError) -> any TransportFactory {
        let path = config.modules.first { $0.name == name }?.path
        let request = ModuleRequest(name: name, path: path, searchPath: config.daemon.modulePath)
        switch catalog.lookUp(request) {
        case .found(let factory): return factory
        case .unavailable(let reason):
            throw MeshError(.moduleRefused, "module \"\(name)\" is not available: \(reason)")
        }
    }

    /// The modules of the configured devices that can be used.
    var configuredModules: [String] {
        var names: [String] = []
        for device in config.devices where device.disabledReason == nil && !names.contains(device.module) {
            names.append(device.module)
        }
        return names
    }

    // MARK: Scanning

    /// Devices as they are heard, for so long: `scan.ready`, then `scan.seen`, then `scan.end`. Through this module, or
    /// through those that configured devices use and that of radios, if it is there.
    func scan(_ module: String?, for time: Duration) async throws(MeshError) -> AsyncStream<JSONValue> {
        let factories = try scanners(module)
        var streams: [(module: String, results: AsyncStream<ScanResult>)] = []
        var events: [JSONValue] = []
        var failure: MeshError?
        for factory in factories {
            let name = factory.descriptor.name
            do {
                streams.append((name, try await factory.scan()))
            } catch {
                let error = MeshError(wrapping: error)
                failure = failure ?? error
                events.append([
                    "type": "scan.fail", "module": .string(name), "code": .string(error.code.slug),
                    "message": .string(error.message),
                ])
            }
        }
        if streams.isEmpty, let failure { throw failure }
        events.insert(
            ["type": "scan.ready", "modules": .array(streams.map { .string($0.module) })], at: 0)
        // A consumer that is slow sees the newest: devices are seen again and again.
        let (sightings, continuation) = AsyncStream.makeStream(
            of: JSONValue.self, bufferingPolicy: .bufferingNewest(512))
        for event in events { continuation.yield(event) }
        let known = KnownDevices(config)
        let work = Task(executorPreference: loop.taskExecutor) { [loop, streams] in
            await withTaskGroup(of: Bool.self) { group in
                for (module, results) in streams {
                    group.addTask {
                        for await result in results { continuation.yield(known.sighting(result, module).json) }
                        return false
                    }
                }
                group.addTask {
                    try? await loop.sleep(for: time)
                    return true
                }
                while let isOver = await group.next(), !isOver {}
                group.cancelAll()
            }
            continuation.yield(["type": "scan.end"])
            continuation.finish()
        }
        continuation.onTermination = { _ in work.cancel() }
        return sightings
    }

    private func scanners(_ module: String?) throws(MeshError) -> [any TransportScanning] {
        if let module {
            let factory = try factory(module)
            guard let scanner = factory.scanner else {
                throw MeshError(.notSupported, "module \"\(module)\" cannot look for devices")
            }
            return [scanner]
        }
        var scanners: [any TransportScanning] = []
        for name in configuredModules + [Self.radioModule]
        where !scanners.contains(where: { $0.descriptor.name == name }) {
            if let scanner = (try? factory(name))?.scanner { scanners.append(scanner) }
        }
        guard !scanners.isEmpty else {
            throw MeshError(
                .notSupported,
                "no module here can look for devices: those of the config cannot, and \"\(Self.radioModule)\" is not "
                    + "installed; see `meshhost modules`, or name one with --module")
        }
        return scanners
    }

    // MARK: Pairing

    /// Whom `pair` and `unpair` are about.
    struct Target {
        var factory: any TransportPairing
        var settings: TransportSettings
        /// The configured device, if it is one.
        var device: String?
    }

    /// A configured device by its name or address, else the device with this address. Reads the secrets of a configured
    /// one.
    func target(_ request: HostCommand.PairOptions) throws(MeshError) -> Target {
        let environment = TransportEnvironment(log: log.adding([("device", request.target)])) { _ in }
        if let device = device(request.target) {
            if let module = request.module, module != device.module {
                throw MeshError(
                    .invalidArgument, "device \"\(device.name)\" is configured for module \"\(device.module)\"")
            }
            if let reason = device.disabledReason { throw MeshError(.moduleRefused, reason) }
            let factory = try pairing(device.module)
            var settings = try TransportSettings(device, of: factory, secrets, environment)
            try settings.set(request, of: factory)
            return Target(factory: factory, settings: settings, device: device.name)
        }
        let factory = try pairing(request.module ?? Self.radioModule)
        guard factory.descriptor.options.contains(where: { $0.name == "address" }) else {
            throw MeshError(.notSupported, "devices of module \"\(factory.descriptor.name)\" have no address")
        }
        // What looks like a name is one, mistyped.
        guard request.target.contains(":") else { throw unknown(request.target) }
        var settings = TransportSettings(
            device: request.target, options: [].resolve([:]).values, written: ["address": .string(request.target)],
            environment: environment)
        try settings.set(request, of: factory)
        return Target(factory: factory, settings: settings)
    }

    private func device(_ target: String) -> DeviceConfig? {
        config.devices.first { $0.name == target }
            ?? config.devices.first { $0.text(ofOption: "address")?.lowercased() == target.lowercased() }
    }

    private func pairing(_ module: String) throws(MeshError) -> any TransportPairing {
        let factory = try factory(module)
        guard factory.descriptor.capabilities.contains(.pairing), let pairing = factory as? any TransportPairing else {
            throw MeshError(.notSupported, "devices of module \"\(module)\" are not paired with")
        }
        return pairing
    }

    private func unknown(_ target: String) -> MeshError {
        let near = NearestName.of(target, among: config.devices.map(\.name)).map { "; did you mean \"\($0)\"?" } ?? ""
        return MeshError(
            .deviceUnknown, "no device is called \"\(target)\"\(near), and it is no address such as C0:11:22:33:44:55")
    }

    // MARK: Examining

    /// What the modules of the configured devices, or without any that of radios, say of what their links go through.
    func examine() async -> [DoctorFinding] {
        var findings: [DoctorFinding] = []
        let names = configuredModules
        for name in names.isEmpty ? [Self.radioModule] : names {
            let factory: any TransportFactory
            do throws(MeshError) {
                factory = try self.factory(name)
            } catch {
                // Without devices nobody needs it.
                if !names.isEmpty {
                    findings.append(
                        DoctorFinding(name, .problem, name, error.message, advice: "see `meshhost modules`"))
                }
                continue
            }
            guard let examining = factory as? any TransportExamining else { continue }
            var devices: [TransportSettings] = []
            for device in config.devices where device.module == name && device.disabledReason == nil {
                let environment = TransportEnvironment(log: log.adding([("device", device.name)])) { _ in }
                do throws(MeshError) {
                    devices.append(try TransportSettings(device, of: factory, secrets, environment))
                } catch {
                    findings.append(
                        DoctorFinding(
                            name, .problem, device.name, error.message, advice: "correct its options in the config"))
                }
            }
            findings += await examining.examine(devices).map { DoctorFinding(area: name, finding: $0) }
        }
        return findings
    }
}

extension TransportFactory {
    /// This, if it can look for devices.
    fileprivate var scanner: (any TransportScanning)? {
        descriptor.capabilities.contains(.scanning) ? self as? any TransportScanning : nil
    }
}

extension TransportSettings {
    /// The command line wins over the config. Checks the options as they are then.
    fileprivate mutating func set(
        _ request: HostCommand.PairOptions, of factory: any TransportFactory
    ) throws(MeshError) {
        for (name, value) in [("pin", request.pin), ("adapter", request.adapter)] {
            guard let value else { continue }
            guard factory.descriptor.options.contains(where: { $0.name == name }) else {
                throw MeshError(.notSupported, "module \"\(factory.descriptor.name)\" has no option \"\(name)\"")
            }
            written[name] = .string(value)
        }
        let (values, issues) = factory.check(written)
        if let issue = issues.first {
            throw MeshError(
                .invalidArgument, issue.option.isEmpty ? issue.message : "\(issue.option): \(issue.message)")
        }
        options = values
    }
}
