// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshJournal
internal import MeshLoop
internal import MeshRuntime
internal import MeshTransportAPI

/// Messages from the journal to a client, as the radio gives them: one for each SYNC_NEXT_MESSAGE.
extension RadioSession {
    /// A client's look at an empty journal asks the radio too if that was not done for so long.
    private static let pollAge = Duration.seconds(5)
    /// Entries read from the journal for one client at a time.
    private static let readAhead = 32

    /// Tells the client that messages wait for it, as the radio would.
    func tellOfMessages(_ client: VirtualCompanion) {
        guard let cursor = client.membership?.cursor, let newest, newest.sequence > cursor else { return }
        push(client, Data([PushCode.messageWaiting.rawValue]))
    }

    /// Pushes are held back so long after a message, unless the client says something before.
    private static let holdTime = Duration.milliseconds(100)

    /// SYNC_NEXT_MESSAGE.
    func nextMessage(for client: VirtualCompanion, _ command: Data) {
        // That it asks for the next one shows that it has the one before, also if it is gone in the next moment.
        client.confirmIfLater()
        client.work = .journal(command)
        runTask(for: client) { session, id in await session.giveNextMessage(to: id, command) }
    }

    /// Gives the client its next message.
    ///
    /// Whether it got the message shows when it asks on. A program that takes one and then ends shows it by closing in good
    /// order; but closing with anything unread resets the connection, as a crash before reading does. So pushes are held
    /// back for a moment: what is unread then is the message. After that moment it counts as read if it has arrived.
    private func giveNextMessage(to id: UInt64, _ command: Data) async {
        // A program that never said its name is known by its address.
        if let client = clients[id], client.membership == nil { await becomeMember(id, name: client.appName) }
        // The journal did not say where it is; that there are no messages would be a lie.
        if let client = clients[id], client.membership == nil {
            return answer(client, CompanionFrame.error(.fileError))
        }
        do {
            guard let (entry, frame) = try await nextVisible(for: id) else { return nothingFor(id, command) }
            guard let membership = clients[id]?.membership else { return }
            // Before the client gets it: after a crash of the host it must not come twice.
            try await journal.setCursor(entry.sequence, of: membership.identity, device: device)
            guard let client = clients[id] else {
                return try await journal.setCursor(
                    membership.confirmed, of: membership.identity, device: device, rewinding: true)
            }
            if let current = client.membership?.identity, current != membership.identity {
                // It has taken over another place meanwhile.
                try await journal.setCursor(entry.sequence, of: current, device: device)
                try await journal.forgetCursor(of: membership.identity, device: device)
            }
            counters.messagesDelivered += 1
            client.membership?.given(
                entry.sequence, isInputEnded: client.connection.isInputEnded,
                after: client.arrived + client.connection.unparsedCommands)
            if client.inbox.isEmpty { client.hold = (loop.now + Self.holdTime, []) }
            answer(client, frame)
            armTimer()
        } catch {
            log(.info, "a client's message could not be read", [("error", "\(error)")])
            // It is read again from the cursor on.
            clients[id]?.membership?.ahead = []
            if let client = clients[id] { answer(client, CompanionFrame.error(.fileError)) }
        }
    }

    /// The next entry that the client can read and wants, in its version.
    private func nextVisible(for id: UInt64) async throws(MeshError) -> (JournalEntry, Data)? {
        while let client = clients[id], let membership = client.membership {
            if membership.ahead.isEmpty {
                let entries = try await entries(after: membership.cursor)
                guard !entries.isEmpty else { return nil }
                clients[id]?.membership?.ahead = entries[...]
            }
            guard let entry = clients[id]?.membership?.ahead.popFirst() else { return nil }
            let isWanted =
                entry.origin == nil
                || (entry.origin != membership.identity.description
                    && shares[client.connection.share]?.settings.echoes == true)
            if isWanted, let frame = MessageView.frame(entry.frame, forVersion: client.version) {
                return (entry, frame)
            }
            clients[id]?.membership?.passedOver(entry.sequence)
        }
        return nil
    }

    private func entries(after cursor: Int64) async throws(MeshError) -> [JournalEntry] {
        if let newest, newest.sequence <= cursor { return [] }
        return try await journal.entries(of: device, after: cursor, limit: Self.readAhead)
    }

    /// The client has had time to read what it was given.
    func heldLongEnough(_ client: VirtualCompanion) {
        if client.membership?.isInDoubt == false, client.connection.isAcknowledged == true {
            client.membership?.confirm()
        }
        release(client)
    }

    /// The journal has nothing more for the client. The radio may.
    private func nothingFor(_ id: UInt64, _ command: Data) {
        guard let client = clients[id] else { return }
        if isServing, fetching.isRunning || loop.now - fetching.lastEnd > Self.pollAge {
            client.work = .fetching(command)
            fetchMessages()
        } else {
            answer(client, CompanionFrame.reply(.noMoreMessages))
        }
    }

}

extension VirtualCompanion.Membership {
    /// The client has shown that it got what it was given.
    mutating func confirm() {
        confirmed = cursor
        isInDoubt = false
    }

    /// The client is being given an entry.
    mutating func given(_ sequence: Int64, isInputEnded: Bool, after commands: Int) {
        cursor = sequence
        givenAfter = commands
        isInDoubt = isInputEnded
    }

    /// An entry is not for the client: nothing of it can be lost.
    mutating func passedOver(_ sequence: Int64) {
        if confirmed == cursor { confirmed = sequence }
        cursor = sequence
    }
}
