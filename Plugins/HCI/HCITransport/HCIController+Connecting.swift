// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// Finding devices and making links, one at a time: a controller has one initiator.
extension HCIController {
    /// The attempt that is under way.
    struct Connecting {
        var settings: LinkSettings
        var peerName: String
        var continuation: CheckedContinuation<(ConnectStateMachine.Result, HCILink?), Never>
    }

    func connect(
        _ request: GATTConnectRequest, _ options: HCILinkOptions = HCILinkOptions()
    ) async throws(GATTError) -> HCILink {
        let peer = request.target.description
        _ = try await usable(.connect, peer)
        guard await turns.take() else { throw .cancelled(.connect, peer) }
        let outcome = await makeLink(request, options)
        await turns.pass()
        let link = try outcome.get()
        do throws(GATTError) {
            try await link.setUp()
        } catch {
            await link.close()
            throw error
        }
        return link
    }

    private func makeLink(
        _ request: GATTConnectRequest, _ options: HCILinkOptions
    ) async -> Result<HCILink, GATTError> {
        let peer = request.target.description
        while true {
            let address = await find(request.target)
            if Task.isCancelled { return .failure(.cancelled(.connect, peer)) }
            guard let descriptor else { return .failure(unusable(.connect, peer)) }
            guard let address else {
                return .failure(
                    GATTError(.other, .connectionFailed, "\(port) refuses to look for devices", .connect, peer))
            }
            let (result, link) = await create(
                ConnectionRequest(peer: address, ownAddressKind: descriptor.ownAddress.kind), descriptor,
                LinkSettings(passkey: request.passkey, options: options), request.target.name ?? peer)
            if let link { return .success(link) }
            // For those who scan: it is looked for again, together with them.
            if result == .cancelled, isCreationInterrupted, !Task.isCancelled { continue }
            if result == .controllerLost { return .failure(unusable(.connect, peer)) }
            return .failure(GATTError(result, adapter: "\(port)", peer) ?? unusable(.connect, peer))
        }
    }

    /// The address to connect to; nil when the task is cancelled or the controller is lost. A full address needs no
    /// search, for the controller waits for its advertisement; but that would keep it from scanning for others. A device that
    /// may advertise another address is looked for.
    private func find(_ target: BLETarget) async -> DeviceAddress? {
        if scanners.isEmpty, case .address(let address) = target, let kind = address.kind {
            let address = DeviceAddress(address.value, kind == .public ? .public : .random)
            if !mayBePrivate(address) { return address }
        }
        return await seek(target)
    }

    // MARK: Creating

    private func create(
        _ request: ConnectionRequest, _ descriptor: ControllerDescriptor, _ settings: LinkSettings, _ peer: String
    ) async -> (ConnectStateMachine.Result, HCILink?) {
        await pauseScan()
        defer { resumeScan() }
        isCreationInterrupted = false
        return await withTaskCancellationHandler {
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

    /// Lets somebody scan: the attempt is cancelled, and its device is looked for instead.
    func interruptCreation() {
        guard connecting != nil else { return }
        isCreationInterrupted = true
        cancelCreation()
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
