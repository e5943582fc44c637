// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import MeshLoop
internal import MeshTransportAPI

/// The instances of one module: one for all devices where the module can do that, else one for each.
///
/// Used on the loop's thread only: that is what makes it Sendable.
final class ModuleInstances: @unchecked Sendable {
    let loop: EventLoop
    private let module: any HostedModule
    private let log: LogSink
    private let settings: ModuleSettings
    private var shared: ModuleInstance?
    private var ofDevices: [String: ModuleInstance] = [:]
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

    /// The instance without a device: for the links of a multilink module, and for scanning.
    func sharedInstance() throws(MeshError) -> ModuleInstance {
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
