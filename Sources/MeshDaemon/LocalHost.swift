// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshConfig
internal import MeshLoop
internal import MeshTransportAPI

/// Modules in this process, for a command that no daemon answers.
actor LocalHost {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let catalog: ModuleCatalog
    private let config: HostConfig
    private let log: LogSink
    private var signals: [LoopSignal] = []

    init(loop: EventLoop, catalog: sending ModuleCatalog, config: HostConfig, log: LogSink) {
        self.loop = loop
        self.catalog = catalog
        self.config = config
        self.log = log
    }

    private var surroundings: Surroundings { Surroundings(catalog: catalog, config: config, loop: loop, log: log) }

    func scan(
        _ scan: HostCommand.ScanOptions, onEvent: @Sendable (JSONValue) -> Bool
    ) async throws(MeshError) {
        for await event in try await surroundings.scan(scan.module, for: scan.time) where !onEvent(event) { return }
    }

    func pair(_ request: HostCommand.PairOptions) async throws(MeshError) -> JSONValue {
        let target = try await surroundings.target(request)
        do {
            let report = try await target.factory.pair(target.settings)
            return [
                "schema": "meshhost.pair/1", "device": target.device.map { .string($0) } ?? .null, "connected": false,
                "report": report.shownFromAir.json,
            ]
        } catch {
            throw MeshError(wrapping: error)
        }
    }

    func unpair(_ request: HostCommand.PairOptions) async throws(MeshError) -> JSONValue {
        let target = try await surroundings.target(request)
        do {
            return [
                "schema": "meshhost.unpair/1", "device": target.device.map { .string($0) } ?? .null,
                "was_bonded": .bool(try await target.factory.unpair(target.settings)),
            ]
        } catch {
            throw MeshError(wrapping: error)
        }
    }

    func describe(_ adapter: String, of module: String) async throws(MeshError) -> JSONValue {
        try await surroundings.describe(adapter, of: module)
    }

    func examine(_ modules: [String]? = nil) async -> [DoctorFinding] {
        await surroundings.examine(modules)
    }

    /// What there is to say of these devices alone.
    func examine(devices: Set<String>) async -> [DoctorFinding] {
        var config = config
        config.devices.removeAll { !devices.contains($0.name) }
        return await Surroundings(catalog: catalog, config: config, loop: loop, log: log).examine()
    }

    /// Ends with `stop` on SIGINT and SIGTERM, so that modules are stopped in an orderly way: nothing stays connected.
    func watchSignals(_ stop: @escaping @Sendable (Int32) -> Void) {
        signals = [SIGINT, SIGTERM].compactMap { number in try? LoopSignal(loop, number) { stop(number) } }
    }

    /// Stops all modules.
    func shutDown() async {
        signals = []
        await catalog.shutDown()
    }
}
