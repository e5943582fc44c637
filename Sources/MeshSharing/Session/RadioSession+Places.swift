// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshJournal
internal import MeshLoop
internal import MeshRuntime
internal import MeshTransportAPI

/// Which program a client is, and where it is in the messages: over reconnections, and over restarts of the host.
///
/// A cursor is stored before its message is given, and taken back if the client shows that it did not get it. Whoever comes
/// after it under the same name waits until that is stored.
extension RadioSession {
    /// APP_START: who the client is decides where it goes on reading.
    func join(_ client: VirtualCompanion, as frame: Data) {
        client.confirmIfLater()
        client.appName = Self.appName(frame)
        client.work = .journal(frame)
        runTask(for: client) { session, id in
            await session.becomeMember(id, name: Self.appName(frame))
            session.joined(id, frame)
        }
    }

    /// The name in APP_START (after seven reserved bytes, which meshcore_py fills otherwise).
    static func appName(_ frame: Data) -> String {
        guard case .appStart(let start)? = try? CompanionCommand(decoding: frame) else { return "" }
        return start.appName
    }

    private func joined(_ id: UInt64, _ frame: Data) {
        guard let client = clients[id] else { return }
        client.work = nil
        read(frame, CommandSpec.expectation(for: frame), client)
        serve(client)
    }

    /// Gives the client its place; a new one begins some messages before the newest.
    func becomeMember(_ id: UInt64, name: String) async {
        guard let client = clients[id], let share = shares[client.connection.share] else { return }
        // A token says who somebody is, wherever they are and whatever their program calls itself.
        let name = client.connection.token.map { "token:\($0)" } ?? name
        let address = client.connection.identityAddress
        await deadOnesLeave(name: name, address: address, share: client.connection.share)
        // It may have left meanwhile, and nobody would free its slot.
        guard clients[id] != nil else { return }
        let base = "\(share.settings.identityName)\n\(name)\n\(address)"
        let hasOtherName = client.membership.map { $0.identity.name != name } ?? false
        var slot = slots.join(base: base, client: id, now: loop.now)
        // Its share and address are those of its connection, and cannot be others.
        if hasOtherName, let unread = leaveOldPlace(client) {
            await rewind(unread)
            departureEnded()
        }
        do {
            while true {
                // What one that has left was being given may have to be taken back.
                while departures > 0, clients[id] != nil { await departure(for: id) }
                let identity = ClientIdentity(
                    share: share.settings.identityName, name: name, address: address, slot: slot)
                guard let client = clients[id], client.membership?.identity != identity else { return }
                let cursor = try await place(of: identity)
                // One that was there before it may have gone meanwhile, and left it its slot. Nothing is awaited between this
                // look and the membership, so a slot that is left to it later finds the membership and changes it.
                guard let current = slots.slot(of: id), current != slot || departures > 0 else {
                    log(
                        .debug, "a client's place in the messages",
                        [("client", "\(id)"), ("identity", "\(identity)"), ("after", "\(cursor)")])
                    clients[id]?.membership = VirtualCompanion.Membership(
                        identity: identity, cursor: cursor, confirmed: cursor)
                    return
                }
                slot = current
            }
        } catch {
            log(.info, "a client's place in the messages is not known", [("error", "\(error)")])
        }
    }

    /// A client that says another name is another one from now on: what it was given under the old one, and has not shown to
    /// have got, is for that name again. It is nowhere until it has its new place: a slot that is left to it meanwhile is one
    /// of the new name, and must not be taken for one of the old. Therefore nothing is awaited between its new slot and this;
    /// gives what is still to be taken back.
    private func leaveOldPlace(_ client: VirtualCompanion) -> VirtualCompanion.Membership? {
        guard let old = client.membership else { return nil }
        client.membership = nil
        guard old.cursor != old.confirmed else { return nil }
        counters.messagesRedelivered += 1
        departures += 1
        return old
    }

    /// Where an identity is in the messages.
    private func place(of identity: ClientIdentity) async throws(MeshError) -> Int64 {
        if newest == nil {
            noteNewest(try await journal.entries(of: device, after: journal.head(of: device) - 1, limit: 1).last)
        }
        if let stored = try await journal.cursor(of: identity, device: device) { return stored }
        let cursor: Int64
        if let sibling = siblings(of: identity).max(by: { $0.confirmed < $1.confirmed }) {
            // Perhaps it is the same program, come back before its dead connection was noticed.
            cursor = sibling.confirmed
        } else {
            cursor = try await journal.sequence(before: settings.backlog, of: device)
        }
        try await journal.setCursor(cursor, of: identity, device: device)
        return cursor
    }

    /// The places of live programs with the same name.
    private func siblings(of identity: ClientIdentity) -> [VirtualCompanion.Membership] {
        clients.values.compactMap(\.membership).filter {
            $0.identity.share == identity.share && $0.identity.name == identity.name
                && $0.identity.address == identity.address && $0.identity.slot != identity.slot
        }
    }

    /// Connections of that program which the kernel knows to be dead leave first, so that their place is free.
    private func deadOnesLeave(name: String, address: String, share: Int) async {
        for _ in 0..<3 {
            let isHeldUp = clients.values.contains {
                $0.membership?.identity.name == name && $0.connection.share == share
                    && $0.connection.identityAddress == address && $0.connection.isPeerGone
            }
            guard isHeldUp else { return }
            // Their end is in the loop's next turn.
            try? await loop.sleep(for: .milliseconds(1))
        }
    }

    /// The client has gone: where it did not get its last message, its identity will get it again.
    func leaveMessages(_ client: VirtualCompanion, _ reason: LeaveReason) {
        // It may itself be waiting for others that have left.
        departed.removeValue(forKey: client.id)?.resume()
        if client.journalTasks > 0 {
            departing[client.id] = client.journalTasks
            departures += client.journalTasks
        }
        let wasOrderly = client.connection.wasAcknowledged
        let heard = client.connection.lastHeard
        // Nobody has come back for one whose connection the host ends: the others of its name are somebody else.
        let isOver = wasOrderly || reason.isByOrder
        if let handover = slots.left(client: client.id, isGraceful: isOver, lastHeard: heard),
            let heir = clients[handover.client], let place = heir.membership
        {
            // The heir began where this one had surely read to, and its place counts from now on.
            return takeOver(handover.slot, by: heir, from: place)
        }
        // An heir that is still asking for its place finds this one's, which must be true by then.
        guard let membership = client.membership, membership.cursor != membership.confirmed else { return }
        if wasOrderly, !membership.isInDoubt { return }
        counters.messagesRedelivered += 1
        departures += 1
        storeInBackground {
            await $0.rewind(membership)
            $0.departureEnded()
        }
    }

    private func rewind(_ membership: VirtualCompanion.Membership) async {
        log(
            .debug, "a client's last message counts as not read",
            [("identity", "\(membership.identity)"), ("after", "\(membership.confirmed)")])
        do {
            try await journal.setCursor(
                membership.confirmed, of: membership.identity, device: device, rewinding: true)
        } catch {
            log(.info, "a client's place in the messages could not be stored", [("error", "\(error)")])
        }
    }

    /// A program that had come back before its dead connection was noticed goes on in its own place.
    private func takeOver(_ slot: Int, by client: VirtualCompanion, from old: VirtualCompanion.Membership) {
        let identity = ClientIdentity(
            share: old.identity.share, name: old.identity.name, address: old.identity.address, slot: slot)
        client.membership?.identity = identity
        departures += 1
        storeInBackground {
            await $0.move(old, to: identity)
            $0.departureEnded()
        }
    }

    private func move(_ old: VirtualCompanion.Membership, to identity: ClientIdentity) async {
        do {
            try await journal.setCursor(old.cursor, of: identity, device: device, rewinding: true)
            try await journal.forgetCursor(of: old.identity, device: device)
        } catch {
            log(.info, "a client's place in the messages could not be stored", [("error", "\(error)")])
        }
    }

    // MARK: Tasks

    /// Runs what uses the journal and belongs to no link; ``shutDown()`` waits for it.
    func storeInBackground(_ body: @escaping @Sendable (isolated RadioSession) async -> Void) {
        storesUnderWay += 1
        Task.immediate(executorPreference: loop.taskExecutor) {
            await body(self)
            self.storeFinished()
        }
    }

    private func journalTaskEnded(client id: UInt64) {
        clients[id]?.journalTasks -= 1
        guard let left = departing[id] else { return }
        departing[id] = left > 1 ? left - 1 : nil
        departureEnded()
    }

    /// Waits until everything is stored for those that have left, or the client itself leaves. Looks again where it begins
    /// to wait: an `await` may go through the loop's queue.
    private func departure(for id: UInt64) async {
        await withCheckedContinuation { continuation in
            if departures > 0, clients[id] != nil { departed[id] = continuation } else { continuation.resume() }
        }
    }

    private func departureEnded() {
        departures -= 1
        guard departures == 0 else { return }
        let waiters = departed.values
        departed = [:]
        for waiter in waiters { waiter.resume() }
    }

    private func storeFinished() {
        storesUnderWay -= 1
        if storesUnderWay == 0 {
            storesEnded?.resume()
            storesEnded = nil
        }
    }

    /// Waits until nothing of this session uses the journal any more. After the shares and the link.
    public func shutDown() async {
        await withCheckedContinuation { continuation in
            if storesUnderWay > 0 { storesEnded = continuation } else { continuation.resume() }
        }
        do {
            try await storeKept()
        } catch {
            log(.error, "a message that the radio has given out is lost", [("error", "\(error)")])
        }
    }

    /// Runs what has to wait for the journal, one command at a time for each client. The last thing that a task does may be
    /// to begin the client's next command, and with it a task that goes on when this one has ended.
    func runTask(
        for client: VirtualCompanion, _ body: @escaping @Sendable (isolated RadioSession, UInt64) async -> Void
    ) {
        let id = client.id
        client.journalTasks += 1
        storeInBackground {
            await body($0, id)
            $0.journalTaskEnded(client: id)
        }
    }
}
