// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshCompanion
internal import MeshCrypto
internal import MeshJournal
internal import MeshLoop
internal import MeshRuntime
public import MeshTransportAPI

extension RadioSession {
    /// Opens a share; its number is what ``closeShare(_:)`` takes. Throws when an address cannot be bound, or when its
    /// certificate cannot be used.
    public func openShare(_ settings: ShareSettings) throws(MeshError) -> Int {
        let tls = try accessContext(of: settings)
        let number = nextShare
        nextShare += 1
        var listeners: [LoopListener] = []
        for address in settings.addresses {
            do throws(LoopError) {
                let onFileChange = onListenerChange.map { tell in
                    { (error: LoopError?) in tell(address.description, error) }
                }
                listeners.append(
                    try LoopListener(loop, on: address, onFileChange: onFileChange) { stream in
                        self.assumeIsolated { $0.clientConnected(stream, share: number) }
                    })
            } catch {
                throw MeshError(listening: error, on: address, for: settings.name)
            }
        }
        shares[number] = Share(
            settings: settings, listeners: listeners,
            airtime: AirtimeBudget(percent: settings.airtimePercent, burst: settings.airtimeBurst), tls: tls)
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
        closeEntrants(of: number)
        // What is wrong with a file that nobody wants any more is over.
        for path in share.listeners.compactMap(\.address.unixPath) { onListenerChange?(path, nil) }
        for client in clients.values where client.connection.share == number {
            client.connection.closeAfterFlush()
            clientLeft(client, share.settings, .shareClosed)
        }
        // Theirs may have been the last deadlines.
        armTimer()
        bus.publish("share.closed", device: device, .json(["share": .string(share.settings.name)]))
    }

    /// Closes every share.
    public func closeShares() {
        for number in shares.keys.sorted() { closeShare(number) }
    }

    private func clientConnected(_ stream: LoopStream, share number: Int) {
        guard let share = shares[number] else { return }
        let settings = share.settings
        var engine: TLSEngine?
        do throws(TLSError) {
            engine = try share.tls?.makeEngine()
        } catch {
            log(.error, "a client was not served", [("share", settings.name), ("error", "\(error)")])
            return stream.close()
        }
        let connection = ShareClient(
            id: nextClientID(), share: number, settings: settings,
            stream: ShareStream(stream, engine: engine, loop: loop), loop: loop)
        if isFull(number, settings) { return refuse(connection, .full) }
        if engine == nil, settings.tokens.isEmpty { return connection.start(join(connection, settings)) }
        enter(connection, settings)
    }

    /// Whether a share has all the clients that it may have.
    func isFull(_ number: Int, _ settings: ShareSettings) -> Bool {
        clients.values.count { $0.connection.share == number } >= settings.maximumClients
    }

    /// Makes a connection one of the clients; gives what it has to call from now on.
    func join(_ connection: ShareClient, _ settings: ShareSettings) -> ShareClient.Callbacks {
        let client = VirtualCompanion(connection: connection)
        clients[client.id] = client
        bus.publish("client.join", device: device, .json(.object(facts(connection, settings))))
        log(
            .notice, "client joined", [("share", settings.name), ("client", "\(client.id)"), ("peer", connection.peer)])
        let loop = loop
        return ShareClient.Callbacks(
            now: { loop.now },
            room: { [unowned client] in self.room(for: client) },
            onFrame: { [unowned client] frame in self.frameReceived(frame, from: client) },
            onInputEnd: { [unowned client] in self.flushLater(client) },
            onDrained: { [unowned client] in self.continueList(client) },
            onLeave: { [unowned client] reason in self.clientLeft(client, settings, reason) })
    }

    /// Closes a connection that does not become a client. Tells of such once a second at most: a peer that connects again
    /// and again must not push everything else out of the log and the events.
    func refuse(_ connection: ShareClient, _ why: Refusal) {
        connection.closeAfterFlush()
        counters.left[why.leaveReason, default: 0] += 1
        guard let settings = shares[connection.share]?.settings,
            let count = shares[connection.share]?.refusals.refused(now: loop.now)
        else { return }
        var facts = facts(connection, settings)
        facts["count"] = .int(Int64(count))
        facts["reason"] = .string(why.rawValue)
        bus.publish("client.refused", device: device, .json(.object(facts)))
        log(
            .warning, "a client was refused",
            [("share", settings.name), ("peer", connection.peer), ("reason", why.rawValue), ("count", "\(count)")])
    }

    func clientLeft(_ client: VirtualCompanion, _ settings: ShareSettings, _ reason: LeaveReason) {
        guard clients.removeValue(forKey: client.id) != nil else { return }
        // Its command in flight keeps the lane until the reply; a mesh request keeps the radio until its answer.
        lane.requesterLeft(LaneRequester(client: client.id))
        meshRequests.requesterLeft(LaneRequester(client: client.id))
        acks.clientLeft(client.id)
        traces.clientLeft(client.id)
        leaveMessages(client, reason)
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
            "role": .string(client.role.rawValue), "token": client.token.map { .string($0) } ?? .null,
        ]
    }

    // MARK: Facts

    /// Every open share.
    public var shareSnapshots: [ShareSnapshot] {
        shares.sorted { $0.key < $1.key }.flatMap { number, share in
            let count = clients.values.count { $0.connection.share == number }
            return share.listeners.map {
                ShareSnapshot(
                    name: share.settings.name, type: share.settings.type, listen: $0.address.description,
                    clients: count,
                    hasTLS: share.tls != nil, tokens: share.settings.tokens.map(\.name))
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
                peer: connection.peer, role: client.role, token: connection.token, tls: connection.tlsVersion,
                app: client.membership.map { _ in client.appName },
                slot: client.membership?.identity.slot, version: client.version,
                unread: client.membership.map { newest?.sequence ?? 0 > $0.cursor }, framesIn: connection.framesIn,
                framesOut: connection.framesOut, queueFrames: backlog.frames, queueBytes: backlog.bytes,
                dropped: connection.dropped)
        }
    }
}
