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

    func connect(_ request: GATTConnectRequest) async throws(GATTError) -> HCILink {
        start()
        let peer = request.target.description
        guard descriptor != nil else { throw .controllerGone("\(port)", .connect, peer) }
        guard await turns.take() else { throw .cancelled(.connect, peer) }
        let address = await find(request.target)
        guard let address, let descriptor, !Task.isCancelled else {
            await turns.pass()
            if Task.isCancelled { throw .cancelled(.connect, peer) }
            if self.descriptor == nil { throw .controllerGone("\(port)", .connect, peer) }
            throw GATTError(
                .other, .connectionFailed, "\(port) refuses to look for devices", .connect, peer)
        }
        let (result, link) = await create(
            ConnectionRequest(peer: address, ownAddressKind: descriptor.ownAddress.kind), descriptor,
            LinkSettings(passkey: request.passkey), request.target.name ?? peer)
        await turns.pass()
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

    // MARK: Finding

    /// The address to connect to; nil when the task is cancelled or the controller is lost. A full address needs no
    /// search: the controller waits for its advertisement.
    private func find(_ target: BLETarget) async -> DeviceAddress? {
        if case .address(let address) = target, let kind = address.kind {
            return DeviceAddress(address.value, kind == .public ? .public : .random)
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
        for (serial, seeker) in seekers where seeker.target.matches(sighting) {
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
            endLine(MeshError(.adapterUnavailable, "the controller at \(port) does not end an attempt to connect"))
        case .finish(let result):
            guard let connecting else { return }
            self.connecting = nil
            guard case .connected(let connection) = result, let descriptor else {
                return connecting.continuation.resume(returning: (result, nil))
            }
            let link = HCILink(
                self, connection, own: descriptor.ownAddress, peerName: connecting.peerName,
                bond: bond(of: connection.peer), passkey: connecting.settings.passkey,
                blockedUntil: attempts.blockedUntil(connection.peer, now: loop.now))
            found[connecting.peerName] = connection.peer
            begin(link)
            connecting.continuation.resume(returning: (result, link))
        }
    }
}

extension BLETarget {
    fileprivate var name: String? {
        if case .name(let name) = self { name } else { nil }
    }

    fileprivate func matches(_ sighting: DeviceSightings.Sighting) -> Bool {
        switch self {
        case .name(let name): sighting.name == name
        case .address(let address): address.matches(BLEAddress(sighting.address))
        }
    }
}

extension BLEAddress {
    init(_ address: DeviceAddress) {
        self.init(address.value, address.kind == .public ? .public : .random)
    }
}
