// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshDBus
internal import MeshLoop
internal import MeshTransportAPI

/// Making links: find the device, take the adapter's turn, connect, and try again what is worth it, until the caller gives up.
extension BlueZService {
    /// Longer than any caller waits: bluetoothd and the kernel give up after 20 to 40 s.
    private static let connectTime = Duration.seconds(120)
    /// `Device1.Disconnect` takes 2 s in BlueZ 5.66.
    static let disconnectTime = Duration.seconds(5)

    /// Most links that come up at all are up by then.
    private static let turnTime = Duration.seconds(4)

    private enum ConnectResult {
        case connected
        /// Others had waited long enough.
        case turnPassed
        case failed(DBusError)
    }

    /// How long one attempt may go on.
    private final class TurnWatch {
        let timer: LoopTimer
        var isOver = false
        /// The end of the attempt, while it is under way.
        var ending: Task<Void, Never>?

        init(_ loop: EventLoop) {
            timer = LoopTimer(loop)
        }
    }

    /// What a connection attempt works with.
    struct ConnectOrder: Sendable {
        var request: GATTConnectRequest
        var choice: AdapterChoice
        /// Whether attempts of other programs are ended as often as it takes.
        var takesOver: Bool
        var settings: BlueZLink.Settings
    }

    /// A link to a device that is connected, by whomever.
    func adopt(_ order: ConnectOrder) async throws(GATTError) -> BlueZLink? {
        await retain()
        do throws(GATTError) {
            let adapter = try usableAdapter(order.choice)
            if let device = objects.device(order.request.target, on: adapter), device.isConnected,
                !isClosing(device.path)
            {
                return try makeLink(device.path, order)
            }
        } catch {
            await releaseAndClose()
            throw error
        }
        await releaseAndClose()
        return nil
    }

    func connect(_ order: ConnectOrder) async throws(GATTError) -> BlueZLink {
        await retain()
        do throws(GATTError) {
            if state(order.choice) == .poweredOff, powerChoices.contains(order.choice),
                let adapter = objects.adapter(order.choice)
            {
                await powerOn(adapter.path)
            }
            let asker = nextSerial()
            book.configure(asker, order.request.target, order.request.passkey)
            defer { book.forget(asker) }
            return try await connectRepeatedly(order)
        } catch {
            await releaseAndClose()
            throw error
        }
    }

    /// The path of the adapter, if it can be used.
    func usableAdapter(_ choice: AdapterChoice) throws(GATTError) -> String {
        let state = state(choice)
        if let error = state.error(adapter: adapterName(choice)) { throw GATTError(.bluetoothUnavailable, error) }
        guard let adapter = objects.adapter(choice) else {
            throw GATTError(.adapterOff, during: .connect, peer: "", adapter: adapterName(choice), cause: nil)
        }
        return adapter.path
    }

    private func connectRepeatedly(_ order: ConnectOrder) async throws(GATTError) -> BlueZLink {
        let peer = order.request.target.description
        var policy = ConnectRetryPolicy()
        while true {
            let adapter = try usableAdapter(order.choice)
            let (path, wish) = try await find(order, on: adapter)
            let error: DBusError
            switch await connectOnce(path, on: adapter, wish) {
            case .connected:
                bondSuspicion.lift(path)
                endedAttempts.remove(path)
                return try makeLink(path, order)
            case .turnPassed: continue
            case .failed(let reason): error = reason
            }
            let failure = meaning(BlueZFailure(error, during: .connect), on: adapter)
            let bonded = objects.devices[path]?.isBonded == true
            let suspected = bondSuspicion.connectFailed(path, failure, isBonded: bonded)
            let takeover: ConnectRetryPolicy.Takeover =
                order.takesOver ? .always : endedAttempts.contains(path) ? .none : .once
            let step = policy.connectFailed(
                failure, isBonded: bonded, isBondSuspected: suspected, takeover: takeover)
            // With any other end, nobody else's attempt was under way.
            if failure != .inProgress, failure != .cancelled { endedAttempts.remove(path) }
            log(.debug, "Connect failed", [("device", peer), ("error", error.description), ("then", "\(step)")])
            switch step {
            case .useLink: return try makeLink(path, order)
            case .fail:
                // With bluetoothd or the adapter gone, that is the reason.
                if failure != .cancelled { _ = try usableAdapter(order.choice) }
                let adapter = adapterName(order.choice)
                throw GATTError(
                    suspected ? .bondSuspect : failure, during: .connect, peer: peer, adapter: adapter, cause: error)
            case .retry(let delay): await settle(path, disconnects: false, delay)
            case .wait(let delay): try? await loop.sleep(for: delay)
            case .disconnectThenRetry(let delay):
                log(.notice, "an attempt of another program to connect is ended", [("device", peer)])
                endedAttempts.insert(path)
                await settle(path, disconnects: true, delay)
            case .forgetThenRetry:
                _ = try? await call(adapter, BlueZNames.adapter, "RemoveDevice", [.objectPath(path)])
            case .searchThenRetry: await refresh()
            }
            if Task.isCancelled { throw .cancelled(.connect, peer: peer) }
        }
    }

    /// The device's path, at once if it is known. Else it is looked for, and the returned wish keeps the search on: bluetoothd may
    /// drop a device that it has only seen as soon as the search ends.
    private func find(
        _ order: ConnectOrder, on adapter: String
    ) async throws(GATTError) -> (path: String, wish: UInt64?) {
        let target = order.request.target
        if let device = objects.device(target, on: adapter) { return (device.path, nil) }
        let filter = DiscoveryStateMachine.Filter(services: [order.request.service], reportsDuplicates: false)
        let wish = wish(on: adapter, filter)
        let failures = searches[adapter]?.failures ?? 0
        while true {
            let isOver = await wait(upTo: .seconds(600)) {
                $0.objects.device(target, on: adapter) != nil
                    || $0.state(order.choice) != .poweredOn && !$0.isPowerCycling(order.choice)
                    || ($0.searches[adapter]?.failures ?? 0) != failures
            }
            if let device = objects.device(target, on: adapter) { return (device.path, wish) }
            if isOver || Task.isCancelled { break }
        }
        let failure = meaning(searches[adapter]?.lastFailure ?? .other, on: adapter)
        endWish(wish, on: adapter)
        if Task.isCancelled { throw .cancelled(.connect, peer: target.description) }
        _ = try usableAdapter(order.choice)
        throw GATTError(
            failure, during: .discover, peer: target.description,
            adapter: adapterName(order.choice), cause: nil)
    }

    /// One `Device1.Connect`, in its turn: bluetoothd refuses, and some controllers cannot make, two links at once.
    private func connectOnce(
        _ path: String, on adapter: String, _ wish: UInt64?
    ) async -> ConnectResult {
        var hasTurn = false
        if await closingEnded(path) { hasTurn = await takeTurn(adapter) }
        defer {
            if let wish { endWish(wish, on: adapter) }
            if hasTurn { endTurn(adapter) }
        }
        guard hasTurn else { return .failed(DBusError(DBusError.cancelled)) }
        if objects.devices[path]?.isConnected == true { return .connected }
        let pauses = pausesSearch.contains(adapter)
        if pauses { await pauseSearch(on: adapter) }
        defer { if pauses { resumeSearch(on: adapter) } }
        let watch = TurnWatch(loop)
        limitTurn(watch, path, on: adapter)
        defer { watch.timer.cancel() }
        var failure: DBusError?
        do throws(DBusError) {
            _ = try await call(path, BlueZNames.device, "Connect", timeout: Self.connectTime)
        } catch {
            failure = error
        }
        watch.timer.cancel()
        if watch.isOver {
            // A `Disconnect` that is still under way would end the next attempt, and a link that came up after all.
            await watch.ending?.value
            await settle(path, disconnects: false, .zero)
            return Task.isCancelled ? .failed(DBusError(DBusError.cancelled)) : .turnPassed
        }
        if failure == nil, await isConnected(path) { return .connected }
        let error = failure ?? DBusError("org.bluez.Error.Failed", "le-connection-abort-by-local")
        switch BlueZFailure(error, during: .connect) {
        case .cancelled, .peerSilent:
            // Also when it is up by now: the caller is gone.
            await loop.uncancelled { await self.disconnect(path) }
        case .linkAborted where searches[adapter]?.machine.isOn == true: pausesSearch.insert(adapter)
        default: break
        }
        return .failed(error)
    }

    /// Whether a device is connected, now that `Connect` has succeeded. That is told before the reply, as a rule. bluetoothd 5.66
    /// does not tell it at all where its socket to the device was open before the kernel had told it of the link, as on a busy
    /// machine: so it is asked, until it knows it as well.
    private func isConnected(_ path: String) async -> Bool {
        for _ in 0..<8 {
            if await wait(upTo: .milliseconds(250), until: { $0.objects.devices[path]?.isConnected != false }) { break }
            await ask(path, BlueZNames.device, "Connected")
        }
        return objects.devices[path]?.isConnected == true
    }

    /// Ends an attempt that takes long while others wait for the turn: a device that is away must not keep the others from
    /// theirs. It gets its next turn after them.
    private func limitTurn(_ watch: TurnWatch, _ path: String, on adapter: String) {
        watch.timer.schedule(after: Self.turnTime) {
            guard self.isTurnContended(adapter) else { return self.limitTurn(watch, path, on: adapter) }
            watch.isOver = true
            watch.ending = Task(executorPreference: self.loop.taskExecutor) { await self.disconnect(path) }
        }
    }

    /// Waits until nothing is left of a failed attempt, so that the next one does not run into it.
    private func settle(_ path: String, disconnects: Bool, _ delay: Duration) async {
        if disconnects { await disconnect(path) }
        _ = await wait(upTo: Self.disconnectTime) { $0.objects.devices[path]?.isConnected != true }
        if delay > .zero { try? await loop.sleep(for: delay) }
    }

    /// Ends a link, or an attempt to make one (`doc/org.bluez.Device.rst`: it cancels a pending `Connect`), and waits until it
    /// has ended.
    func disconnect(_ path: String) async {
        guard objects.devices[path] != nil else { return }
        do throws(DBusError) {
            _ = try await call(path, BlueZNames.device, "Disconnect", timeout: Self.disconnectTime)
        } catch {
            log(.debug, "Disconnect failed", [("device", path), ("error", error.description)])
        }
        _ = await wait(upTo: Self.disconnectTime) { $0.objects.devices[path]?.isConnected != true }
    }

    /// The link object of a device that is connected. It takes over the caller's use of the service.
    private func makeLink(_ path: String, _ order: ConnectOrder) throws(GATTError) -> BlueZLink {
        let name = adapterName(order.choice)
        let peer = order.request.target.description
        guard let bus else { throw GATTError(.serviceGone, during: .connect, peer: peer, adapter: name, cause: nil) }
        guard objects.devices[path]?.isConnected == true else {
            throw GATTError(.linkAborted, during: .connect, peer: peer, adapter: name, cause: nil)
        }
        if links[path] != nil {
            throw GATTError(
                .inUse,
                MeshError(
                    .connectionFailed,
                    "this host has a link to \(peer) already: for another device of the configuration, or for a "
                        + "pairing that is under way",
                    context: .init(operation: "connect", peer: peer)))
        }
        forgetLoss(path)
        let link = BlueZLink(
            self, bus, path: path, serial: nextSerial(), peerName: peer, adapterName: name,
            settledChanges: gattChanges[path] ?? 0, order.settings)
        links[path] = link
        book.linkBegan(path, order.request.passkey)
        return link
    }

    /// A link object that has been closed, or lost.
    func linkClosed(_ link: BlueZLink) {
        guard links[link.path] === link else { return }
        links[link.path] = nil
        book.linkEnded(link.path)
        changed()
    }

    /// Whether the device's link is being closed: bluetoothd may take longer for that than its owner waits.
    private func isClosing(_ path: String) -> Bool {
        links[path]?.assumeIsolated { $0.isClosing } == true
    }

    /// Waits until no link to the device is being closed, as the end of the old one would be the end of the next. False when
    /// the task is cancelled.
    private func closingEnded(_ path: String) async -> Bool {
        while isClosing(path) {
            _ = await wait(upTo: Self.connectTime) { !$0.isClosing(path) }
            if Task.isCancelled { return false }
        }
        return true
    }

    /// What a failure means for whoever tries again: an adapter that says "not ready" while it is on is ready again soon.
    func meaning(_ failure: BlueZFailure, on adapter: String?) -> BlueZFailure {
        guard failure == .adapterOff, let adapter, objects.adapters[adapter]?.isPowered == true else { return failure }
        return .adapterNotReady
    }

    /// What is known of a device, if the adapter knows it.
    func peer(_ target: BLETarget, _ choice: AdapterChoice) -> GATTPeer? {
        guard let adapter = objects.adapter(choice)?.path, let device = objects.device(target, on: adapter) else {
            return nil
        }
        return GATTPeer(device)
    }

    // MARK: Bonds

    /// Removes the device and its keys. Nothing happens when it has none.
    func removeBond(_ target: BLETarget, _ choice: AdapterChoice) async throws(GATTError) {
        await retain()
        do throws(GATTError) {
            let adapter = try usableAdapter(choice)
            if let device = objects.device(target, on: adapter), device.isBonded || device.isPaired {
                try await remove(device.path, peer: target.description, choice)
            }
        } catch {
            await releaseAndClose()
            throw error
        }
        await releaseAndClose()
    }

    /// `RemoveDevice`: keys, cached services and the object, and a link if there is one.
    func remove(_ path: String, peer: String, _ choice: AdapterChoice) async throws(GATTError) {
        guard let adapter = objects.devices[path]?.adapter else { return }
        bondSuspicion.lift(path)
        do throws(DBusError) {
            _ = try await call(
                adapter, BlueZNames.adapter, "RemoveDevice", [.objectPath(path)], timeout: Self.disconnectTime * 2)
        } catch {
            let failure = BlueZFailure(error, during: .removeBond)
            if failure != .objectGone {
                throw GATTError(error, during: .removeBond, peer: peer, adapter: adapterName(choice))
            }
        }
        _ = await wait(upTo: Self.disconnectTime) { $0.objects.devices[path] == nil }
    }
}

extension GATTPeer {
    init(_ device: BlueZDevice) {
        self.init(
            address: device.address ?? BLEAddress(bytesOf: device.path), name: device.name, rssi: device.rssi,
            isBonded: device.isBonded)
    }
}
