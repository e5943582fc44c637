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
        /// The device was not heard before: it may take for ever.
        var isBlind: Bool
        /// It is cancelled for others, or because the device fell silent.
        var isInterrupted = false
        var continuation: CheckedContinuation<Outcome, Never>
    }

    /// How an attempt ended.
    enum Outcome {
        case made(HCILink)
        /// The device is to be looked for again.
        case interrupted
        case failed(ConnectStateMachine.Result)
    }

    /// A device that was heard a moment ago answers within this, or it is listened for again.
    private static let answerTime = Duration.seconds(4)

    /// `unlessLinked`: fails when somebody else makes a link to the device meanwhile.
    func connect(
        _ request: GATTConnectRequest, _ options: HCILinkOptions = HCILinkOptions(), unlessLinked: Bool = false
    ) async throws(GATTError) -> HCILink {
        let link = try await makeLink(request, options, unlessLinked)
        do throws(GATTError) {
            try await link.setUp()
        } catch {
            await link.close()
            throw error
        }
        // With keys, the link is encrypted by now: the name is that of their owner.
        if let name = request.target.name { remember(name, of: await link.identity) }
        return link
    }

    private func makeLink(
        _ request: GATTConnectRequest, _ options: HCILinkOptions, _ unlessLinked: Bool
    ) async throws(GATTError) -> HCILink {
        let peer = request.target.description
        _ = try await usable(.connect, peer)
        linkSeekers += 1
        defer { linkSeekers -= 1 }
        while true {
            let (address, isBlind) = await find(request.target, unlessLinked)
            if Task.isCancelled { throw .cancelled(.connect, peer) }
            guard descriptor != nil else { throw unusable(.connect, peer) }
            guard let address else {
                throw GATTError(.other, .connectionFailed, "\(port) refuses to look for devices", .connect, peer)
            }
            guard await turns.take() else { throw .cancelled(.connect, peer) }
            if unlessLinked, link(to: request.target) != nil {
                await turns.pass()
                throw GATTError(.inUse, .connectionFailed, "this host has a link to \(peer) already", .connect, peer)
            }
            let outcome = await create(
                address, isBlind: isBlind,
                LinkSettings(
                    name: request.target.name, passkey: request.passkey, takesPairing: request.takesPairing,
                    options: options),
                request.target.name ?? peer)
            await turns.pass()
            switch outcome {
            case .made(let link): return link
            case .interrupted where Task.isCancelled: throw .cancelled(.connect, peer)
            case .interrupted: continue
            case .failed(.controllerLost): throw unusable(.connect, peer)
            case .failed(let result):
                throw GATTError(result, adapter: "\(port)", peer) ?? unusable(.connect, peer)
            }
        }
    }

    /// The address to connect to; nil when the task is cancelled or the controller is lost. A full address needs no
    /// search, for the controller waits for its advertisement; but that would keep it from everything else, and so it is
    /// left to those who are alone. A device that may advertise another address is looked for.
    private func find(_ target: BLETarget, _ unlessLinked: Bool) async -> (DeviceAddress?, isBlind: Bool) {
        if isAlone, case .address(let address) = target, let kind = address.kind {
            let address = DeviceAddress(address.value, kind == .public ? .public : .random)
            if !mayBePrivate(address) { return (address, true) }
        }
        return (await seek(target, unlessLinked: unlessLinked), false)
    }

    /// Nobody but the one who asks needs the controller.
    private var isAlone: Bool { linkSeekers == 1 && scanners.isEmpty && seekers.isEmpty }

    // MARK: Creating

    private func create(
        _ address: DeviceAddress, isBlind: Bool, _ settings: LinkSettings, _ peer: String
    ) async -> Outcome {
        await pauseScan()
        defer { resumeScan() }
        guard let descriptor else { return .failed(.controllerLost) }
        // Others who came meanwhile found no attempt that they could have interrupted.
        if isBlind, !isAlone { return .interrupted }
        let request = ConnectionRequest(peer: address, ownAddressKind: descriptor.ownAddress.kind)
        let limit = LoopTimer(loop)
        defer { limit.cancel() }
        if !isBlind { limit.schedule(after: Self.answerTime) { self.listenAgain() } }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.connecting = Connecting(
                    settings: settings, peerName: peer, isBlind: isBlind, continuation: continuation)
                self.perform(
                    self.creation.connectRequested(request, family: descriptor.family, now: self.loop.now))
                self.armTimer()
                if Task.isCancelled { self.cancelCreation() }
            }
        } onCancel: { [loop] in
            loop.perform { self.assumeIsolated { $0.cancelCreation() } }
        }
    }

    /// Somebody else wants the controller: an attempt that may take for ever is cancelled, and its device listened for,
    /// together with what others listen for.
    func interruptCreation() {
        if connecting?.isBlind == true { listenAgain() }
    }

    private func listenAgain() {
        guard connecting != nil else { return }
        connecting?.isInterrupted = true
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
                let isInterrupted = result == .cancelled && connecting.isInterrupted
                return connecting.continuation.resume(returning: isInterrupted ? .interrupted : .failed(result))
            }
            let identity = identity(of: connection.peer)
            let bond = bond(of: identity)
            let link = HCILink(
                self, connection, own: descriptor.ownAddress, peerName: connecting.peerName, bond: bond,
                database: bond?.database ?? databases[identity],
                tuning: connecting.settings.options.tuning(on: descriptor), settings: connecting.settings,
                blockedUntil: attempts.blockedUntil(identity, now: loop.now))
            found[connecting.peerName] = identity
            begin(link)
            connecting.continuation.resume(returning: .made(link))
        }
    }
}
