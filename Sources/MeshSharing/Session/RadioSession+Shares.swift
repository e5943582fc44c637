// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshCompanion
internal import MeshJournal
internal import MeshLoop
internal import MeshRuntime
public import MeshTransportAPI

extension RadioSession {
    /// Opens a share; its number is what ``closeShare(_:)`` takes. Throws when an address cannot be bound.
    public func openShare(_ settings: ShareSettings) throws(MeshError) -> Int {
        let number = nextShare
        nextShare += 1
        var listeners: [LoopListener] = []
        for address in settings.addresses {
            do throws(LoopError) {
                listeners.append(
                    try LoopListener(loop, on: address) { stream in
                        self.assumeIsolated { $0.clientConnected(stream, share: number) }
                    })
            } catch {
                throw MeshError(listening: error, on: address, for: settings.name)
            }
        }
        shares[number] = Share(
            settings: settings, listeners: listeners,
            airtime: AirtimeBudget(percent: settings.airtimePercent, burst: settings.airtimeBurst))
        for listener in listeners {
            bus.publish(
                "share.listening", device: device,
                .json([
                    "share": .string(settings.name), "type": .string(settings.type),
                    "listen": .string(listener.address.description),
                ]))
        }
        return number
    }

    /// Closes a share and its clients' connections.
    public func closeShare(_ number: Int) {
        guard let share = shares.removeValue(forKey: number) else { return }
        for client in clients.values where client.connection.share == number {
            client.connection.closeAfterFlush()
            clientLeft(client, share.settings, .shareClosed)
        }
        bus.publish("share.closed", device: device, .json(["share": .string(share.settings.name)]))
    }

    /// Closes every share.
    public func closeShares() {
        for number in shares.keys.sorted() { closeShare(number) }
    }

    private func clientConnected(_ stream: LoopStream, share number: Int) {
        guard let share = shares[number] else { return }
        let settings = share.settings
        let connection = ShareClient(id: nextClientID(), share: number, settings: settings, stream: stream, loop: loop)
        guard clients.values.count(where: { $0.connection.share == number }) < settings.maximumClients else {
            connection.close()
            return clientRefused(connection, number, settings)
        }
        let client = VirtualCompanion(connection: connection)
        clients[client.id] = client
        bus.publish("client.join", device: device, .json(.object(facts(connection, settings))))
        log(
            .notice, "client joined", [("share", settings.name), ("client", "\(client.id)"), ("peer", connection.peer)])
        let loop = loop
        connection.start(
            ShareClient.Callbacks(
                now: { loop.now },
                room: { [unowned client] in self.room(for: client) },
                onFrame: { [unowned client] frame in self.frameReceived(frame, from: client) },
                onInputEnd: { [unowned client] in self.flushLater(client) },
                onDrained: { [unowned client] in self.continueList(client) },
                onLeave: { [unowned client] reason in self.clientLeft(client, settings, reason) }))
    }

    /// Tells of refused clients once a second at most: a peer that connects again and again must not push everything else
    /// out of the log and the events.
    private func clientRefused(_ client: ShareClient, _ number: Int, _ settings: ShareSettings) {
        counters.left[.refused, default: 0] += 1
        guard let count = shares[number]?.refusals.refused(now: loop.now) else { return }
        var facts = facts(client, settings)
        facts["count"] = .int(Int64(count))
        bus.publish("client.refused", device: device, .json(.object(facts)))
        log(
            .warning, "a client was refused: the share is full",
            [("share", settings.name), ("peer", client.peer), ("count", "\(count)")])
    }

    private func clientLeft(_ client: VirtualCompanion, _ settings: ShareSettings, _ reason: LeaveReason) {
        guard clients.removeValue(forKey: client.id) != nil else { return }
        // Its command in flight keeps the lane until the reply; a mesh request keeps the radio until its answer.
        lane.requesterLeft(LaneRequester(client: client.id))
        meshRequests.requesterLeft(LaneRequester(client: client.id))
        acks.clientLeft(client.id)
        traces.clientLeft(client.id)
        leaveMessages(client)
        counters.left[reason, default: 0] += 1
        var facts = facts(client.connection, settings)
        facts["reason"] = .string(reason.rawValue)
        facts["dropped"] = .int(Int64(clamping: client.connection.dropped))
        bus.publish("client.leave", device: device, .json(.object(facts)))
        log(
            reason == .closed || reason == .shareClosed ? .notice : .warning, "client left",
            [("share", settings.name), ("client", "\(client.id)"), ("reason", reason.rawValue)])
    }

    private func facts(_ client: ShareClient, _ settings: ShareSettings) -> [String: JSONValue] {
        [
            "client": .int(Int64(clamping: client.id)), "share": .string(settings.name), "peer": .string(client.peer),
            "role": .string(client.role.rawValue),
        ]
    }

    // MARK: Facts

    /// Every open share.
    public var shareSnapshots: [ShareSnapshot] {
        shares.sorted { $0.key < $1.key }.flatMap { number, share in
            let count = clients.values.count { $0.connection.share == number }
            return share.listeners.map {
                ShareSnapshot(
                    name: share.settings.name, type: share.settings.type, listen: $0.address.description, clients: count
                )
            }
        }
    }

    /// How many clients are connected.
    public var clientCount: Int { clients.count }

    /// Every connected client, in the order they came.
    public var clientSnapshots: [ClientSnapshot] {
        clients.values.sorted { $0.id < $1.id }.map { client in
            let connection = client.connection
            let backlog = connection.backlog
            return ClientSnapshot(
                id: client.id, device: device, share: shares[connection.share]?.settings.name ?? "",
                peer: connection.peer, role: client.role, app: client.membership?.identity.name,
                slot: client.membership?.identity.slot, version: client.version,
                unread: client.membership.map { newest?.sequence ?? 0 > $0.cursor }, framesIn: connection.framesIn,
                framesOut: connection.framesOut, queueFrames: backlog.frames, queueBytes: backlog.bytes,
                dropped: connection.dropped)
        }
    }
}
