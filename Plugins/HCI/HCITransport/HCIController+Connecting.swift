// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// Finding devices and making links, one at a time: a controller has one initiator.
extension HCIController {
    /// Waits for a device to be heard.
    struct Seeker {
        var target: BLETarget
        var continuation: CheckedContinuation<DeviceAddress?, Never>
    }

    /// The attempt that is under way.
    struct Connecting {
        var settings: LinkSettings
        var peerName: String
        var continuation: CheckedContinuation<(ConnectStateMachine.Result, HCILink?), Never>
    }

    func connect(
        _ request: GATTConnectRequest, _ options: HCILinkOptions = HCILinkOptions()
    ) async throws(GATTError) -> HCILink {
        start()
        let peer = request.target.description
        guard descriptor != nil else { throw .controllerGone("\(port)", .connect, peer) }
        guard await takeTurn() else { throw .cancelled(.connect, peer) }
        let address = await find(request.target)
        guard let address, let descriptor, !Task.isCancelled else {
            passTurn()
            if Task.isCancelled { throw .cancelled(.connect, peer) }
            if self.descriptor == nil { throw .controllerGone("\(port)", .connect, peer) }
            throw GATTError(
                .other, .connectionFailed, "\(port) refuses to look for devices", .connect, peer)
        }
        let (result, link) = await create(
            ConnectionRequest(peer: address, ownAddressKind: descriptor.ownAddress.kind), descriptor,
            LinkSettings(passkey: request.passkey, options: options), request.target.name ?? peer)
        passTurn()
        guard let link else {
            throw GATTError(result, adapter: "\(port)", peer) ?? .controllerGone("\(port)", .connect, peer)
        }
        do throws(GATTError) {
            try await link.setUp()
        } catch {
            await link.close()
            throw error
        }
        return link
    }

    // MARK: Turns

    private func takeTurn() async -> Bool {
        if Task.isCancelled { return false }
        guard isTurnTaken else {
            isTurnTaken = true
            return true
        }
        let serial = takeSerial()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { self.turns.append((serial, $0)) }
        } onCancel: { [loop] in
            loop.perform { self.assumeIsolated { $0.stopWaiting(serial) } }
        }
    }

    private func stopWaiting(_ serial: UInt64) {
        guard let index = turns.firstIndex(where: { $0.serial == serial }) else { return }
        turns.remove(at: index).continuation.resume(returning: false)
    }

    private func passTurn() {
        if turns.isEmpty { isTurnTaken = false } else { turns.removeFirst().continuation.resume(returning: true) }
    }

    // MARK: Finding

    /// The address to connect to; nil when the task is cancelled or the controller is lost. A full address needs no
    /// search: the controller waits for its advertisement. That of a device that may advertise another one is looked for.
    private func find(_ target: BLETarget) async -> DeviceAddress? {
        if case .address(let address) = target, let kind = address.kind {
            let address = DeviceAddress(address.value, kind == .public ? .public : .random)
            if !mayBePrivate(address) { return address }
        }
        let serial = takeSerial()
        let found = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<DeviceAddress?, Never>) in
                if Task.isCancelled { return continuation.resume(returning: nil) }
                self.seek(serial, Seeker(target: target, continuation: continuation))
            }
        } onCancel: { [loop] in
            loop.perform { self.assumeIsolated { $0.stopSeeking(serial) } }
        }
        await stopScanning()
        return found
    }

    private func seek(_ serial: UInt64, _ seeker: Seeker) {
        guard scan != nil else { return seeker.continuation.resume(returning: nil) }
        seekers[serial] = seeker
        sightings.removeAll()
        perform(scan!.startRequested())
    }

    private func stopSeeking(_ serial: UInt64) {
        seekers.removeValue(forKey: serial)?.continuation.resume(returning: nil)
    }

    func heard(_ report: AdvertisingReport) {
        guard let sighting = sightings.reportReceived(report, now: loop.now), sighting.isConnectable else { return }
        for (serial, seeker) in seekers where seeker.target.matches(sighting, identity(of: sighting.address)) {
            seekers[serial] = nil
            seeker.continuation.resume(returning: sighting.address)
        }
    }

    /// Many controllers cannot scan while they begin a link.
    private func stopScanning() async {
        guard seekers.isEmpty, scan?.isActive == true else { return }
        await withCheckedContinuation { continuation in
            self.scanEnds.append(continuation)
            self.perform(self.scan!.stopRequested())
        }
    }

    func perform(_ action: ScanStateMachine.Action) {
        switch action {
        case .nothing, .began: break
        case .send(let command): send(command, .scan)
        case .ended, .failed:
            if case .failed(let status) = action {
                log(.notice, "the controller does not scan", [("controller", "\(port)"), ("status", "\(status)")])
                for seeker in seekers.values { seeker.continuation.resume(returning: nil) }
                seekers = [:]
            }
            let ends = scanEnds
            scanEnds = []
            for end in ends { end.resume() }
        }
    }

    // MARK: Creating

    private func create(
        _ request: ConnectionRequest, _ descriptor: ControllerDescriptor, _ settings: LinkSettings, _ peer: String
    ) async -> (ConnectStateMachine.Result, HCILink?) {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.connecting = Connecting(settings: settings, peerName: peer, continuation: continuation)
                self.perform(
                    self.creation.connectRequested(request, family: descriptor.family, now: self.loop.now))
                self.armTimer()
                if Task.isCancelled { self.cancelCreation() }
            }
        } onCancel: { [loop] in
            loop.perform { self.assumeIsolated { $0.cancelCreation() } }
        }
    }

    private func cancelCreation() {
        guard connecting != nil else { return }
        perform(creation.cancelRequested(now: loop.now))
        armTimer()
    }

    func perform(_ action: ConnectStateMachine.Action) {
        switch action {
        case .nothing: break
        case .send(let command):
            switch command.opcode {
            case .createConnectionCancel: send(command, .cancellation)
            case .disconnect: send(command, .nobody)
            default: send(command, .creation)
            }
        case .resetController:
            log(.notice, "the controller does not end an attempt", [("controller", "\(port)")])
            endLine()
        case .finish(let result):
            guard let connecting else { return }
            self.connecting = nil
            guard case .connected(let connection) = result, let descriptor else {
                return connecting.continuation.resume(returning: (result, nil))
            }
            let identity = identity(of: connection.peer)
            let bond = bond(of: identity)
            let link = HCILink(
                self, connection, own: descriptor.ownAddress, peerName: connecting.peerName, bond: bond,
                database: bond?.database ?? databases[identity],
                tuning: connecting.settings.options.tuning(on: descriptor), passkey: connecting.settings.passkey,
                blockedUntil: attempts.blockedUntil(identity, now: loop.now))
            found[connecting.peerName] = identity
            begin(link)
            connecting.continuation.resume(returning: (result, link))
        }
    }
}

extension BLETarget {
    fileprivate var name: String? {
        if case .name(let name) = self { name } else { nil }
    }

    fileprivate func matches(_ sighting: DeviceSightings.Sighting, _ identity: DeviceAddress) -> Bool {
        switch self {
        case .name(let name): sighting.name == name
        case .address(let address): address.matches(BLEAddress(identity))
        }
    }
}

extension BLEAddress {
    init(_ address: DeviceAddress) {
        self.init(address.value, address.kind == .public ? .public : .random)
    }
}
