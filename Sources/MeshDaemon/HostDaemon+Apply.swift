// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc
internal import MeshCompanion
internal import MeshConfig
internal import MeshLoop
internal import MeshModuleHost
internal import MeshRuntime
internal import MeshSharing
internal import MeshTransportAPI

/// Devices and shares: from config to what runs.
extension HostDaemon {
    // MARK: Devices

    /// The session of a companion device, made when it is first needed.
    func session(for device: String, _ running: Running) -> RadioSession {
        if let session = sessions[device] { return session }
        let settings = config.devices.first { $0.name == device }.map(Self.sessionSettings) ?? RadioSessionSettings()
        let session = RadioSession(
            device: device, settings: settings, loop: loop, bus: bus, journal: running.journal, log: log,
            wallClock: { .sinceEpoch },
            onListenerChange: { [unowned self] path, error in
                self.assumeIsolated { $0.socketChanged(path, error) }
            }
        ) { [unowned self] in
            self.assumeIsolated { $0.nextClientID() }
        }
        sessions[device] = session
        return session
    }

    /// The device's session is over, after its link: its clients are told, and what is to be stored of them is stored before
    /// another session of that name can read it.
    private func endSession(of device: String) async {
        guard let session = sessions.removeValue(forKey: device) else { return }
        for (id, share) in shares where share.device == device { shares[id] = nil }
        await session.closeShares()
        await session.shutDown()
    }

    private static func sessionSettings(of device: DeviceConfig) -> RadioSessionSettings {
        var settings = RadioSessionSettings()
        settings.sendWait = device.companion.sendWait
        settings.setsClock = device.companion.setsClock
        settings.backlog = Int(device.companion.backlog)
        settings.probeSilence = device.companion.probeAfter
        return settings
    }

    private func nextClientID() -> UInt64 {
        lastClientID += 1
        return lastClientID
    }

    /// Takes a device on. One that cannot be is told of and left out; the others go on. A disabled one is only listed.
    func addDevice(_ device: DeviceConfig, _ running: Running) async {
        guard device.disabledReason == nil else { return }
        do throws(MeshError) {
            try await running.coordinator.addDevice(settings(of: device, running))
            takenOn.insert(device.name)
        } catch {
            log(.error, "a device cannot be used", [("device", device.name), ("reason", error.message)])
        }
    }

    /// What the coordinator needs to know of a device.
    func settings(of device: DeviceConfig, _ running: Running) -> DeviceSettings {
        let factory: Result<any TransportFactory, MeshError>
        do throws(MeshError) {
            factory = .success(try catalog.factory(device.module))
        } catch {
            factory = .failure(error)
        }
        let descriptor = (try? factory.get())?.descriptor
        let session: any LinkSession =
            device.deviceProtocol == .companion ? session(for: device.name, running) : DrainSession()
        return DeviceSettings(
            name: device.name, link: DeviceLinkSettings(device, descriptor), session: session,
            initialIntent: device.autoconnect ? .connect : .disconnect
        ) { environment throws(MeshError) in
            // Secrets are read for each new transport: a credential may have been renewed.
            let factory = try factory.get()
            return try factory.makeTransport(
                TransportSettings(
                    device, of: factory, SecretSource(environment: ProcessInfo.processInfo.environment), environment))
        }
    }

    // MARK: Shares

    /// Opens a share; throws when one of its addresses cannot be bound.
    func openShare(_ share: ShareConfig, _ running: Running) async throws(MeshError) {
        var addresses: [SocketAddress] = []
        for listen in share.listen {
            switch listen {
            case .unix(let path):
                addresses.append(SocketAddress(unixPath: path))
            case .tcp(let host, let port):
                do throws(LoopError) {
                    addresses += try await loop.resolve(host: host, port: port)
                } catch {
                    // The resolver may not be reached yet.
                    throw MeshError(
                        .serviceUnavailable,
                        "share \(share.id): \(host) has no address (\(error.detail)); see that the name is right",
                        cause: error)
                }
            }
        }
        let settings = ShareSettings(
            name: share.id, type: share.kind.rawValue, addresses: addresses,
            role: ClientRole(share.role), tokens: try tokens(of: share), tls: try tls(of: share),
            maximumClients: Int(share.maximumClients), queueFrames: Int(share.queueFrames),
            queueBytes: Int(share.queueBytes), stuckTimeout: share.stuckTimeout,
            receivedPacketLogs: share.receivedPacketLogs, echoes: share.echoes,
            airtimePercent: Double(share.airtimePercent), airtimeBurst: share.airtimeBurst)
        if share.isInsecure, !addresses.allSatisfy(\.isLoopback), share.tokens.isEmpty || share.tls == nil {
            let what = share.tokens.isEmpty ? "authentication" : "TLS"
            log(.warning, "a share without \(what) is open to the network", [("share", share.id)])
        }
        let number = try await session(for: share.device, running).openShare(settings)
        shares[share.id] = OpenShare(device: share.device, number: number)
    }

    /// Closes a share and its clients' connections.
    func closeShare(_ id: String) async {
        guard let share = shares.removeValue(forKey: id) else { return }
        await sessions[share.device]?.closeShare(share.number)
    }

    // MARK: Reload

    /// What a reload came to.
    struct ReloadOutcome: Sendable {
        var isAccepted: Bool
        var report: JSONValue
    }

    /// Reads the config again and changes only what is different. A config with errors changes nothing.
    ///
    /// Done in a task of its own: whoever asked may go away, half a reload must not be left. Two at once would work on each
    /// other's half-applied state, so each waits for the one before it, and the first for the end of the start.
    @discardableResult
    func reload() async -> ReloadOutcome {
        let (start, previous) = (starting, reloads.last)
        let task = Task(executorPreference: loop.taskExecutor) {
            _ = await start?.value
            _ = await previous?.value
            return await self.nextReload()
        }
        reloads.append(task)
        return await task.value
    }

    /// One reload whose turn has come.
    private func nextReload() async -> ReloadOutcome {
        notifier.reloading(now: loop.now)
        let outcome = await reloadConfig()
        if !isStopping { notifier.ready(status: await status) }
        // They end in their order, so the first is this one.
        reloads.removeFirst()
        return outcome
    }

    /// SIGHUP: reloads, and once more if asked again meanwhile. Any number of signals make two reloads at most.
    func hangUp() {
        guard !isHungUp else { return }
        isHungUp = true
        let (start, previous) = (starting, reloads.last)
        Task(executorPreference: loop.taskExecutor) {
            _ = await start?.value
            _ = await previous?.value
            await self.answerHangUp()
        }
    }

    private func answerHangUp() async {
        isHungUp = false
        if !isStopping { await reload() }
    }

    private func reloadConfig() async -> ReloadOutcome {
        guard let reading = await input.read(catalog, beside: loop) else {
            return ReloadOutcome(isAccepted: false, report: ["ok": false, "errors": ["the daemon is stopping"]])
        }
        for diagnostic in reading.diagnostics {
            let isError = diagnostic.severity == .error
            log(isError ? .error : .warning, diagnostic.rendered(showingSource: false))
        }
        guard let new = reading.config, let running, !isStopping else {
            log(.error, "the config was not reloaded; the one in force goes on")
            let errors = reading.diagnostics.filter { $0.severity == .error }.map { $0.rendered(showingSource: false) }
            let report: JSONValue = ["ok": false, "errors": .array(errors.map { .string($0) })]
            bus.publish("config.reload", .json(report))
            return ReloadOutcome(isAccepted: false, report: report)
        }
        let diff = ConfigDiff(from: config, to: new)
        let problems = await apply(diff, new, running)
        var report: [String: JSONValue] = [
            "ok": true, "devices_added": .array(diff.devicesAdded.map { .string($0) }),
            "devices_removed": .array(diff.devicesRemoved.map { .string($0) }),
            "devices_changed": .array(diff.devicesChanged.map { .string($0) }),
            "companions_changed": .array(diff.companionsChanged.map { .string($0) }),
            "shares_added": .array(diff.sharesAdded.map { .string($0) }),
            "shares_removed": .array(diff.sharesRemoved.map { .string($0) }),
            "shares_changed": .array(diff.sharesChanged.map { .string($0) }),
            "restart_required": .array(diff.restartRequired.map { .string($0) }),
        ]
        if !problems.isEmpty { report["problems"] = .array(problems.map { .string($0.description) }) }
        if !diff.restartRequired.isEmpty {
            log(.warning, "changed keys need a restart", [("keys", diff.restartRequired.joined(separator: " "))])
        }
        log(.notice, "config reloaded")
        bus.publish("config.reload", .json(.object(report)))
        return ReloadOutcome(isAccepted: true, report: .object(report))
    }

    /// Returns what did not work; the rest runs. What did not work at an earlier reload is tried again.
    private func apply(
        _ diff: ConfigDiff, _ new: HostConfig, _ running: Running
    ) async -> [MeshError] {
        var problems: [MeshError] = []
        let old = config
        config = new
        if let level = diff.logLevel { logWriter.setLevel(level) }
        for id in diff.sharesRemoved + diff.sharesChanged { await closeShare(id) }
        for name in diff.devicesRemoved {
            do throws(MeshError) {
                if takenOn.remove(name) != nil { try await running.coordinator.removeDevice(name) }
            } catch {
                problems.append(error)
            }
            unapplied.remove(name)
            await endSession(of: name)
            if let device = old.devices.first(where: { $0.name == name }) { await forget(device) }
        }
        for device in new.devices where diff.companionsChanged.contains(device.name) {
            await sessions[device.name]?.update(Self.sessionSettings(of: device))
        }
        var different = Set(diff.devicesChanged + diff.devicesAdded)
        different.formUnion(new.devices.filter { catalog.outdated.contains($0.module) }.map(\.name))
        for device in new.devices {
            let isMissing = device.disabledReason == nil && !takenOn.contains(device.name)
            guard isMissing || different.contains(device.name) || unapplied.contains(device.name) else { continue }
            let before = old.devices.first { $0.name == device.name }
            do throws(MeshError) {
                try await change(device, from: before, running)
                unapplied.remove(device.name)
                if let before, before.module != device.module || device.disabledReason != nil { await forget(before) }
            } catch {
                log(.error, "a device cannot be used", [("device", device.name), ("reason", error.message)])
                unapplied.insert(device.name)
                problems.append(error)
            }
        }
        await catalog.endOutdated()
        for share in new.shares {
            do throws(MeshError) {
                if shares[share.id] == nil {
                    try await openShare(share, running)
                } else {
                    try await renewAccess(of: share)
                }
            } catch {
                if isStopping {
                    problems.append(MeshError(.serviceUnavailable, "the daemon is stopping"))
                    break
                }
                let what =
                    shares[share.id] == nil
                    ? "a share cannot be opened" : "a share keeps its old tokens and certificate"
                log(.error, what, [("share", share.id), ("reason", error.message)])
                problems.append(error)
            }
        }
        return problems
    }

    /// What its module keeps of a device from link to link goes; an idle transport would stay until the module stops.
    private func forget(_ device: DeviceConfig) async {
        await catalog.forget(device.name, of: device.module)
    }

    /// Makes one device what the new config says.
    private func change(
        _ device: DeviceConfig, from before: DeviceConfig?, _ running: Running
    ) async throws(MeshError) {
        let isSameKind = before?.deviceProtocol == device.deviceProtocol
        if takenOn.contains(device.name), device.disabledReason == nil, isSameKind {
            return try await running.coordinator.updateDevice(settings(of: device, running), needsNewLink: true)
        }
        if takenOn.remove(device.name) != nil { try await running.coordinator.removeDevice(device.name) }
        if !isSameKind { await endSession(of: device.name) }
        guard device.disabledReason == nil else { return }
        try await running.coordinator.addDevice(settings(of: device, running))
        takenOn.insert(device.name)
    }
}
