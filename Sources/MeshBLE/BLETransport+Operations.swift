// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI

/// Operations on the central and its links: each a task of its own, whose end is told to the machine.
extension BLETransport {
    func start(_ operation: BLEOperation, _ generation: UInt64, on link: UInt64?) {
        operations[generation] = Task(executorPreference: loop.taskExecutor) {
            await self.carryOut(operation, generation, on: link)
        }
    }

    private func carryOut(_ operation: BLEOperation, _ generation: UInt64, on link: UInt64?) async {
        do throws(GATTError) {
            let outcome = try await outcome(of: operation, generation, on: link)
            operations[generation] = nil
            perform(machine.operationSucceeded(generation: generation, outcome, now: loop.now))
            // Only now: a link that has ended already says so at once, and the machine has to know it by then.
            if outcome.bringsLink { await watch(generation) }
        } catch {
            if operation == .connect { await noteSighting() }
            operations[generation] = nil
            perform(machine.operationFailed(generation: generation, error, now: loop.now))
        }
    }

    private func outcome(
        of operation: BLEOperation, _ generation: UInt64, on link: UInt64?
    ) async throws(GATTError) -> BLEOutcome {
        switch operation {
        case .adopt:
            guard let link = try await central.adopt(request) else { return .adopted(isBonded: nil) }
            return .adopted(isBonded: await keep(link, generation))
        case .removeBond:
            try await central.removeBond(machine.settings.target)
            return .bondRemoved
        case .connect:
            counters.attempts += 1
            return .connected(isBonded: await keep(try await central.connect(request), generation))
        case .discoverServices:
            return .services(try await gatt(link).discoverServices([machine.settings.profile.service]))
        case .discoverCharacteristics(let service):
            return .characteristics(try await gatt(link).discoverCharacteristics(of: service))
        case .pair:
            let outcome = try await gatt(link).pair()
            if !outcome.wasBonded { counters.pairings += 1 }
            if let link { links[link]?.peer.isBonded = true }
            return .paired(outcome)
        case .subscribe(let characteristic):
            guard let link, let entry = links[link] else { throw Self.linkIsGone }
            try await entry.gatt.startNotifications(of: characteristic) { [inbox = entry.inbox] in inbox.received($0) }
            return .subscribed
        case .readWriteLength(let characteristic):
            return .writeLength(try await gatt(link).maximumWriteLength(of: characteristic))
        case .close:
            if let link { await removeLink(link)?.gatt.close() }
            return .closed
        case .write: throw Self.linkIsGone
        }
    }

    private var request: GATTConnectRequest {
        let settings = machine.settings
        var request = GATTConnectRequest(
            target: settings.target, passkey: settings.passkey, service: settings.profile.service)
        request.takesPairing = settings.pairing != .never
        return request
    }

    private func gatt(_ link: UInt64?) throws(GATTError) -> any GATTLink {
        guard let link, let gatt = links[link]?.gatt else { throw Self.linkIsGone }
        return gatt
    }

    private static var linkIsGone: GATTError {
        GATTError(.linkLost, MeshError(.linkClosed, "the link has ended"))
    }

    // MARK: Links

    /// Whether the device is bonded.
    private func keep(_ link: any GATTLink, _ generation: UInt64) async -> Bool {
        let peer = await link.peer
        lastPeer = peer
        links[generation] = Link(link, peer, BLEInbox(loop, received, environment))
        return peer.isBonded
    }

    private func watch(_ generation: UInt64) async {
        guard let link = links[generation] else { return }
        await link.gatt.setDisconnectionHandler { [weak self] error in
            self?.assumeIsolated { $0.linkLost(generation, error) }
        }
    }

    private func linkLost(_ generation: UInt64, _ error: GATTError) {
        guard links[generation] != nil else { return }
        perform(machine.linkLost(generation: generation, error, now: loop.now))
        _ = removeLink(generation)
    }

    private func removeLink(_ generation: UInt64) -> Link? {
        let link = links.removeValue(forKey: generation)
        link?.inbox.close()
        return link
    }

    func closeStray(_ generation: UInt64) {
        guard let link = removeLink(generation) else { return }
        let gatt = link.gatt
        _ = Task(executorPreference: loop.taskExecutor) { await gatt.close() }
    }

    /// For the text of the error.
    private func noteSighting() async {
        let target = machine.settings.target
        guard let peer = await central.lastSighting(of: target), target == machine.settings.target else { return }
        lastPeer = peer
    }

    // MARK: Writes

    func start(_ outgoing: OutgoingFrame, _ generation: UInt64) {
        guard let link = up, let receive = link.description?.receive else {
            perform(machine.writeEnded(generation: generation, Self.linkIsGone, now: loop.now))
            return
        }
        // Where a device knows but one way, that is taken.
        let properties = receive.properties
        let withResponse =
            properties.contains(.write) && (outgoing.wantsResponse || !properties.contains(.writeWithoutResponse))
        let gatt = link.gatt
        operations[generation] = Task(executorPreference: loop.taskExecutor) {
            await self.carryOut(outgoing, generation, gatt, receive, withResponse: withResponse)
        }
    }

    private func carryOut(
        _ outgoing: OutgoingFrame, _ generation: UInt64, _ gatt: any GATTLink, _ receive: GATTCharacteristic,
        withResponse: Bool
    ) async {
        var failure: GATTError?
        do throws(GATTError) {
            try await gatt.write(outgoing.frame, to: receive, withResponse: withResponse)
            counters.framesSent += 1
            counters.bytesSent += Int64(outgoing.frame.count)
        } catch {
            failure = error
        }
        operations[generation] = nil
        perform(machine.writeEnded(generation: generation, failure, isProof: withResponse, now: loop.now))
    }
}
