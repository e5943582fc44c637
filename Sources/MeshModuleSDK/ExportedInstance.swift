// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshLoop
internal import MeshTransportAPI

/// One instance of the module: the host's loop, wrapped, a factory on it and the links it made.
actor ExportedInstance {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let host: HostHandle
    let factory: any TransportFactory
    private var links: [mh_link: ExportedLink] = [:]
    /// By their names. They stay when their link ends: see ``ExportedDevice``.
    private var devices: [String: ExportedDevice] = [:]
    /// What is being done with `manage`.
    var requests: [UInt64: Task<Void, Never>] = [:]
    private var scanning: Task<Void, Never>?
    private(set) var stopping: Task<Void, Never>?

    init(loop: EventLoop, host: HostHandle, factory: any TransportFactory) {
        self.loop = loop
        self.host = host
        self.factory = factory
    }

    // MARK: Links

    func connect(_ id: mh_link, device name: String, options: Data) -> mh_status {
        guard stopping == nil, links[id] == nil else { return MH_ECLOSED }
        guard case .object(let written)? = try? JSONValue(parsing: options) else { return MH_EINVAL }
        let device: ExportedDevice
        var predecessor: (any MeshTransport)?
        if let kept = devices[name], kept.options == written, !kept.reports.isInUse {
            device = kept
        } else {
            do throws(MeshError) {
                device = try makeDevice(name, written)
            } catch {
                // Not as the result of the op, which could not say what is wrong.
                host.linkDown(id, error.code.abiStatus, detail: error.message)
                return MH_OK
            }
            if let old = devices.updateValue(device, forKey: name) {
                // One that is in use is ended by its link.
                predecessor = old.reports.isInUse ? nil : old.transport
                old.reports.close()
            }
        }
        device.reports.begin(id)
        let link = ExportedLink(
            id, loop: loop, host: host, transport: device.transport, reports: device.reports, after: predecessor)
        links[id] = link
        link.assumeIsolated { link in
            link.start { self.assumeIsolated { $0.links[id] = nil } }
        }
        return MH_OK
    }

    private func makeDevice(
        _ name: String, _ written: [String: JSONValue]
    ) throws(MeshError) -> ExportedDevice {
        let reports = LinkReports(host)
        let environment = TransportEnvironment(
            log: host.log.adding([("device", name)]), linkEvents: { reports.report($0) })
        let transport = try factory.makeTransport(settings(name, written, environment))
        return ExportedDevice(options: written, transport: transport, reports: reports)
    }

    /// A device's settings; throws what is wrong with its options.
    func settings(
        _ name: String, _ written: [String: JSONValue], _ environment: TransportEnvironment
    ) throws(MeshError) -> TransportSettings {
        let (values, issues) = factory.check(written)
        guard issues.isEmpty else {
            throw MeshError(.configurationInvalid, issues.map(\.message).joined(separator: "; "))
        }
        return TransportSettings(device: name, options: values, written: written, environment: environment)
    }

    /// There will be no more links to this device. A link that there still is ends its transport with itself.
    func forget(_ name: String) async {
        guard let device = devices.removeValue(forKey: name) else { return }
        device.reports.close()
        if !device.reports.isInUse { await device.transport.disconnect() }
    }

    func disconnect(_ id: mh_link) -> mh_status {
        guard let link = links[id] else { return MH_ECLOSED }
        link.assumeIsolated { $0.disconnect() }
        return MH_OK
    }

    func send(_ id: mh_link, _ frame: Data, cookie: UInt64, withoutResponse: Bool) -> mh_status {
        guard let link = links[id] else { return MH_ECLOSED }
        return link.assumeIsolated { $0.send(frame, cookie: cookie, withoutResponse: withoutResponse) }
    }

    func receiveReady(_ id: mh_link) -> mh_status {
        guard let link = links[id] else { return MH_ECLOSED }
        link.assumeIsolated { $0.receiveReady() }
        return MH_OK
    }

    func diagnostics() -> JSONValue {
        var facts: [String: JSONValue] = [:]
        for (id, link) in links { facts["\(id)"] = link.assumeIsolated { $0.diagnostics() } }
        return ["links": .object(facts)]
    }

    // MARK: Scanning

    func scan(_ isOn: Bool, _ filter: Data) -> mh_status {
        guard let scanner = factory as? any TransportScanning else { return MH_ENOSUP }
        guard isOn else {
            scanning?.cancel()
            return MH_OK
        }
        guard stopping == nil else { return MH_ECLOSED }
        let before = scanning
        // A device whose options are wrong is one less to look around.
        let devices = ((try? JSONValue(parsing: filter))?["devices"]?.arrayValue ?? []).compactMap { try? device($0) }
        scanning = Task(executorPreference: loop.taskExecutor) { await self.runScan(scanner, devices, after: before) }
        return MH_OK
    }

    private func runScan(
        _ scanner: any TransportScanning, _ devices: [TransportSettings], after before: Task<Void, Never>?
    ) async {
        await before?.value
        do {
            for try await result in try await scanner.scan(around: devices) { host.found(result) }
        } catch {
            // A search that the host has ended has no end of its own any more.
            if !Task.isCancelled { host.scanFailed(MeshError(wrapping: error)) }
        }
    }

    // MARK: The end

    func stop() -> mh_status {
        guard stopping == nil else { return MH_EINVAL }
        stopping = Task(executorPreference: loop.taskExecutor) { await self.endAll() }
        return MH_OK
    }

    private func endAll() async {
        scanning?.cancel()
        for request in requests.values { request.cancel() }
        await scanning?.value
        for request in requests.values { await request.value }
        for link in links.values { await link.disconnect() }
        for link in links.values { await link.finished() }
        for device in devices.values {
            device.reports.close()
            await device.transport.disconnect()
        }
        devices = [:]
        if let factory = factory as? any TransportClosing { await factory.close() }
        host.stopped()
    }

    /// The last call; nothing of the instance runs on the loop by now.
    nonisolated func destroy() {
        host.close()
        // A wrapped loop cannot leak handles of its own; what transports left open stays the host's to find.
        try? loop.shutDown()
    }
}
