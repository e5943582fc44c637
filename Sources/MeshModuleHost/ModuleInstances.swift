// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import MeshLoop
internal import MeshTransportAPI

/// The instances of one module: one for all devices where the module can do that, else one for each, and one more as long as
/// somebody scans or waits for an answer.
///
/// Used on the loop's thread only: that is what makes it Sendable.
final class ModuleInstances: @unchecked Sendable {
    let loop: EventLoop
    private let module: any HostedModule
    private let log: LogSink
    private let settings: ModuleSettings
    private var shared: ModuleInstance?
    private var ofDevices: [String: ModuleInstance] = [:]
    /// Instances that nobody uses any more and that have not ended.
    private var retirements: [ObjectIdentifier: Task<Void, Never>] = [:]
    private var isShutDown = false

    init(module: any HostedModule, loop: EventLoop, log: LogSink, settings: ModuleSettings) {
        self.module = module
        self.loop = loop
        self.log = log
        self.settings = settings
    }

    /// The running instance that a device's links go through; made if there is none, also after one stopped by itself.
    func instance(for device: TransportSettings) throws(MeshError) -> ModuleInstance {
        if module.isMultilink { return try sharedInstance() }
        if let instance = ofDevices[device.device], instance.isRunning { return instance }
        let instance = try start(device.environment.log, options: device.written)
        ofDevices[device.device] = instance
        return instance
    }

    /// Devices that the module sees, until the consumer stops.
    func scan(_ filter: JSONValue) async throws(MeshError) -> AsyncThrowingStream<ScanResult, any Error> {
        let instance = try await borrow()
        do throws(MeshError) {
            return try instance.scan(filter) { self.giveBack(instance) }
        } catch {
            giveBack(instance)
            await retired()
            throw error
        }
    }

    /// The answer of the instance without a device.
    func manage(_ verb: String, _ params: JSONValue, within deadline: Duration) async throws(MeshError) -> JSONValue {
        let answer: Result<JSONValue, MeshError>
        let instance = try await borrow()
        do throws(MeshError) {
            answer = .success(try await instance.manage(verb, params, within: deadline))
        } catch {
            answer = .failure(error)
        }
        giveBack(instance)
        // It may have held what a link needs, such as the port: that is free when this returns.
        await retired()
        return try answer.get()
    }

    /// The instance without a device for one more user, after the end of another that has it no more.
    private func borrow() async throws(MeshError) -> ModuleInstance {
        await retired()
        let instance = try sharedInstance()
        instance.borrowers += 1
        return instance
    }

    /// Without a user it ends, where it carries no links.
    private func giveBack(_ instance: ModuleInstance) {
        instance.borrowers -= 1
        guard instance.borrowers == 0, !module.isMultilink else { return }
        if shared === instance { shared = nil }
        let id = ObjectIdentifier(instance)
        retirements[id] = Task(executorPreference: loop.taskExecutor) {
            await instance.shutDown()
            self.retirements[id] = nil
        }
    }

    /// Returns when what nobody uses any more has ended.
    func retired() async {
        while let retirement = retirements.values.first { await retirement.value }
    }

    /// The instance without a device: for the links of a multilink module, for scanning, and for what is asked.
    private func sharedInstance() throws(MeshError) -> ModuleInstance {
        if let shared, shared.isRunning { return shared }
        let instance = try start(log, options: [:])
        shared = instance
        return instance
    }

    /// Stops the instance that a device has of its own, if it has one.
    func retire(_ device: String) async {
        await ofDevices.removeValue(forKey: device)?.shutDown()
    }

    /// The device is not the module's any more: neither an instance of its own is left, nor what a shared one keeps of it.
    func forget(_ device: String, within deadline: Duration) async {
        await retire(device)
        guard let shared, shared.isRunning else { return }
        shared.borrowers += 1
        defer { giveBack(shared) }
        do throws(MeshError) {
            _ = try await shared.manage(MH_VERB_FORGET, ["device": .string(device)], within: deadline)
        } catch {
            // Most modules keep nothing.
            guard error.code != .notSupported else { return }
            log(.warning, "a module does not forget a device", [("device", device), ("error", error.message)])
        }
    }

    /// Stops what runs. No instance is made after it.
    func shutDown() async {
        isShutDown = true
        let instances = ofDevices.values + (shared.map { [$0] } ?? [])
        shared = nil
        ofDevices = [:]
        // At one time: each may take as long as a module has to stop.
        let executor = loop.taskExecutor
        await withTaskGroup(of: Void.self) { group in
            for instance in instances { group.addTask(executorPreference: executor) { await instance.shutDown() } }
        }
        await retired()
        await module.settled()
    }

    private func start(_ log: LogSink, options: [String: JSONValue]) throws(MeshError) -> ModuleInstance {
        guard !isShutDown else {
            throw MeshError(.cancelled, "module \(module.descriptor.name) is being shut down")
        }
        return try ModuleInstance(
            module, loop: loop, log: log.adding([("module", module.descriptor.name)]), options: options,
            settings: settings)
    }
}
