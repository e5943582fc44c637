// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshDBus
internal import MeshLoop
internal import MeshTransportAPI
internal import MeshWire

/// The driver of ``DiscoveryStateMachine``: one for each adapter that somebody searches on.
extension BlueZService {
    /// Begins to search, if nobody has. Returns a number for ``endWish(_:on:)``. A wish outlives the adapter and bluetoothd: the
    /// search goes on when they are back.
    func wish(on adapter: String, _ filter: DiscoveryStateMachine.Filter) -> UInt64 {
        let serial = nextSerial()
        let search = search(on: adapter)
        perform(search.machine.wishMade(serial, filter, now: loop.now), search)
        return serial
    }

    func endWish(_ serial: UInt64, on adapter: String) {
        guard let search = searches[adapter] else { return }
        perform(search.machine.wishEnded(serial, now: loop.now), search)
    }

    /// Returns when the search has ended. What bluetoothd has only seen stays for 30 s if it can be connected to (BlueZ
    /// `src/adapter.c`, `discovery_cleanup`); where it does not, it is looked for again.
    func pauseSearch(on adapter: String) async {
        let search = search(on: adapter)
        perform(search.machine.paused(now: loop.now), search)
        _ = await wait(upTo: Self.promptly) { $0.searches[adapter]?.machine.isAtRest != false }
    }

    func resumeSearch(on adapter: String) {
        guard let search = searches[adapter] else { return }
        perform(search.machine.resumed(now: loop.now), search)
    }

    /// Whether the adapter is being switched off and on, to free a search.
    func isPowerCycling(_ choice: AdapterChoice) -> Bool {
        guard let adapter = objects.adapter(choice)?.path else { return false }
        return searches[adapter]?.machine.isPowerCycling == true
    }

    private func search(on adapter: String) -> AdapterSearch {
        if let search = searches[adapter] { return search }
        let search = AdapterSearch(adapter: adapter, serial: nextSerial(), loop: loop)
        searches[adapter] = search
        _ = search.machine.adapterChanged(isAvailable: isAvailable(adapter), now: loop.now)
        return search
    }

    private func isAvailable(_ adapter: String) -> Bool {
        outage == nil && objects.adapters[adapter]?.isPowered == true
    }

    /// The adapters, or bluetoothd, came or went.
    func searchesChanged() {
        for adapter in searches.keys { adapterChanged(adapter) }
    }

    func adapterChanged(_ adapter: String) {
        if objects.adapters[adapter]?.isPowered == true { blocked.remove(adapter) }
        guard let search = searches[adapter] else { return }
        perform(search.machine.adapterChanged(isAvailable: isAvailable(adapter), now: loop.now), search)
    }

    /// A device was heard.
    func heard(_ path: String) {
        guard let device = objects.devices[path] else { return }
        searches[device.adapter]?.machine.heard(now: loop.now)
        tellScanners(device)
    }

    private func perform(_ action: DiscoveryStateMachine.Action, _ search: AdapterSearch) {
        let id = (search.adapter, search.serial)
        switch action {
        case .nothing: break
        case .start(let filter, let call):
            search.call = Task(executorPreference: loop.taskExecutor) { await self.start(id, filter, call) }
        case .stop(let call):
            search.call = Task(executorPreference: loop.taskExecutor) { await self.stop(id, call) }
        case .powerCycle(let call):
            log(.notice, "the search is stuck; the adapter is switched off and on", [("adapter", search.adapter)])
            search.call = Task(executorPreference: loop.taskExecutor) { await self.powerCycle(id, call) }
        case .tellFailure:
            log(.notice, "the search could not begin", [("adapter", search.adapter)])
            search.isStuck = true
            search.failures += 1
            changed()
        }
        arm(search)
        if search.machine.isIdle { searches[search.adapter] = nil }
    }

    /// Until a search that bluetoothd says nothing of counts as one that may or may not have begun.
    private static let startTime = Duration.seconds(15)
    private static let lateStartTime = Duration.seconds(90)

    private typealias SearchID = (adapter: String, serial: UInt64)

    /// What has come of a call; nothing if the search is over.
    private func answered(_ id: SearchID, _ input: (AdapterSearch) -> DiscoveryStateMachine.Action) {
        guard let search = searches[id.adapter], search.serial == id.serial else { return }
        perform(input(search), search)
        changed()
    }

    private func start(_ id: SearchID, _ filter: DiscoveryStateMachine.Filter, _ call: UInt64) async {
        let interface = BlueZNames.adapter
        var options: [String: DBusValue] = [
            "Transport": .string("le"), "DuplicateData": .bool(filter.reportsDuplicates),
        ]
        if !filter.services.isEmpty {
            options["UUIDs"] = .array(element: "s", filter.services.map { .string($0.description) })
        }
        // Given up before the call is: an answer that comes late tells of a search that has to be stopped.
        let patience = LoopTimer(loop)
        patience.schedule(after: Self.startTime) { self.startFailed(id, call, .serviceSilent) }
        defer { patience.cancel() }
        do throws(DBusError) {
            _ = try await self.call(id.adapter, interface, "SetDiscoveryFilter", [.options(options)])
            _ = try await self.call(id.adapter, interface, "StartDiscovery", timeout: Self.lateStartTime)
        } catch {
            log(.debug, "StartDiscovery failed", [("adapter", id.adapter), ("error", error.description)])
            return startFailed(id, call, BlueZFailure(error, during: .discover))
        }
        guard searches[id.adapter]?.serial == id.serial else {
            if searches[id.adapter] == nil { await stop(id, call) }
            return
        }
        answered(id) { search in
            search.isStuck = false
            return search.machine.started(call: call, now: loop.now)
        }
    }

    private func startFailed(_ id: SearchID, _ call: UInt64, _ failure: BlueZFailure) {
        let start: DiscoveryStateMachine.StartFailure =
            switch failure {
            case .inProgress: .inProgress
            case .serviceSilent: .unknown
            default: .other
            }
        let mayPowerCycle = allowsPower(id.adapter) && isUnused(id.adapter)
        answered(id) { search in
            search.lastFailure = failure
            return search.machine.startFailed(call: call, start, mayPowerCycle: mayPowerCycle, now: loop.now)
        }
    }

    /// Whether nobody on this machine would lose a link, or the one being made, with the adapter.
    private func isUnused(_ adapter: String) -> Bool {
        isTurnIdle(adapter) && !objects.devices.values.contains { $0.adapter == adapter && $0.isConnected }
    }

    private func stop(_ id: SearchID, _ call: UInt64) async {
        // What it answers changes nothing: "no discovery started" is as good.
        _ = try? await self.call(id.adapter, BlueZNames.adapter, "StopDiscovery", timeout: .seconds(15))
        answered(id) { $0.machine.stopped(call: call, now: loop.now) }
    }

    private func powerCycle(_ id: SearchID, _ call: UInt64) async {
        let adapter = id.adapter
        try? await set(adapter, BlueZNames.adapter, "Powered", .bool(false))
        _ = await wait(upTo: .seconds(2)) { $0.objects.adapters[adapter]?.isPowered != true }
        await powerOn(adapter)
        answered(id) { $0.machine.powerCycled(call: call, now: loop.now) }
    }

    private func arm(_ search: AdapterSearch) {
        guard let deadline = search.machine.nextDeadline else {
            search.timer.cancel()
            search.firesAt = nil
            return
        }
        // A deadline that moves on with each device that is heard is looked at when the old one is over.
        if let firesAt = search.firesAt, firesAt <= deadline { return }
        search.firesAt = deadline
        search.timer.schedule(after: deadline - loop.now) {
            search.firesAt = nil
            self.perform(search.machine.deadlineReached(now: self.loop.now), search)
        }
    }
}
