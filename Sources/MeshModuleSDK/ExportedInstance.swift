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
    private nonisolated let host: HostHandle
    private let factory: any TransportFactory
    private var links: [mh_link: ExportedLink] = [:]
    private var scanning: Task<Void, Never>?
    private var stopping: Task<Void, Never>?

    init(loop: EventLoop, host: HostHandle, factory: any TransportFactory) {
        self.loop = loop
        self.host = host
        self.factory = factory
    }

    // MARK: Links

    func connect(_ id: mh_link, device: String, options: Data) -> mh_status {
        guard stopping == nil, links[id] == nil else { return MH_ECLOSED }
        guard case .object(let written)? = try? JSONValue(parsing: options) else { return MH_EINVAL }
        let (values, issues) = factory.check(written)
        let reports = ReportBox()
        let environment = TransportEnvironment(
            log: host.log.adding([("device", device)]), linkEvents: ReportBox.sink(reports, id, host))
        let transport: any MeshTransport
        do throws(MeshError) {
            guard issues.isEmpty else {
                throw MeshError(.configurationInvalid, issues.map(\.message).joined(separator: "; "))
            }
            transport = try factory.makeTransport(
                TransportSettings(device: device, options: values, written: written, environment: environment))
        } catch {
            // Not as the result of the op, which could not say what is wrong.
            host.linkDown(id, error.code.abiStatus, detail: error.message)
            return MH_OK
        }
        let link = ExportedLink(id, loop: loop, host: host, transport: transport, reports: reports)
        links[id] = link
        link.assumeIsolated { link in
            link.start { self.assumeIsolated { $0.links[id] = nil } }
        }
        return MH_OK
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

    func scan(_ isOn: Bool) -> mh_status {
        guard let scanner = factory as? any TransportScanning else { return MH_ENOSUP }
        guard isOn else {
            scanning?.cancel()
            return MH_OK
        }
        guard stopping == nil else { return MH_ECLOSED }
        let before = scanning
        scanning = Task(executorPreference: loop.taskExecutor) { await self.runScan(scanner, after: before) }
        return MH_OK
    }

    private func runScan(_ scanner: any TransportScanning, after before: Task<Void, Never>?) async {
        await before?.value
        do {
            for await result in try await scanner.scan() { host.found(result) }
        } catch {
            host.log(.info, "scanning failed", [("error", "\(MeshError(wrapping: error))")])
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
        await scanning?.value
        for link in links.values { await link.disconnect() }
        for link in links.values { await link.finished() }
        host.stopped()
    }

    /// The last call; nothing of the instance runs on the loop by now.
    nonisolated func destroy() {
        host.close()
        // A wrapped loop cannot leak handles of its own; what transports left open stays the host's to find.
        try? loop.shutDown()
    }
}
