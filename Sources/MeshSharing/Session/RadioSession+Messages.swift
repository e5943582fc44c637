// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshJournal
internal import MeshLoop
internal import MeshRuntime
internal import MeshTransportAPI

/// Whether the radio's messages are being fetched. Pure.
struct MessageFetching {
    private(set) var isRunning = false
    /// There may be more than those being fetched.
    private var isWanted = false
    /// When fetching last ended.
    private(set) var lastEnd = Duration.zero

    /// Somebody wants messages fetched; whether to begin.
    mutating func wanted() -> Bool {
        isWanted = isRunning
        defer { isRunning = true }
        return !isRunning
    }

    /// The radio has no more; whether to look once more.
    mutating func radioIsEmpty() -> Bool {
        defer { isWanted = false }
        return isWanted
    }

    mutating func ended(now: Duration) {
        isRunning = false
        isWanted = false
        lastEnd = now
    }
}

/// Messages: from the radio into the journal, once, and from there to every client.
///
/// The radio forgets a message when it is read. So each is in the journal before the next one is read, and one that the
/// journal does not take is kept and tried again before any other is read.
extension RadioSession {
    /// A client's look at an empty journal asks the radio too if that was not done for so long.
    private static let pollAge = Duration.seconds(5)
    /// So many messages in a row that the journal has already end the fetching.
    private static let repeatLimit = 32
    /// Entries read from the journal for one client at a time.
    private static let readAhead = 32

    // MARK: Radio → journal

    /// Fetches the radio's messages, if that is not being done yet.
    func fetchMessages() {
        guard isServing, fetching.wanted() else { return }
        workBegan()
        Task.immediate(executorPreference: loop.taskExecutor) {
            await self.fetchUntilEmpty()
            self.workFinished()
        }
    }

    private func fetchUntilEmpty() async {
        do {
            repeat {
                var repeats = 0
                // A radio that gives out the same again and again would keep the host busy for ever.
                while repeats < Self.repeatLimit, let frame = try await nextFromRadio() {
                    repeats = try await store(frame) ? 0 : repeats + 1
                }
            } while fetching.radioIsEmpty()
        } catch {
            log(error.code == .storageFailed ? .error : .debug, "messages were not fetched", [("error", "\(error)")])
        }
        fetching.ended(now: loop.now)
        for client in clients.values.sorted(by: { $0.id < $1.id }) {
            if case .fetching(let command) = client.work { messagesFetched(client, command) }
        }
        armTimer()
    }

    /// The radio's next message; nil if it has none.
    private func nextFromRadio() async throws(MeshError) -> Data? {
        if let unstored { try await store(unstored) }
        let command = Data([CommandCode.syncNextMessage.rawValue])
        let reply = try await ask(command, expecting: CommandSpec.expectation(for: command))
        switch reply.first.flatMap(ReplyCode.init) {
        case .noMoreMessages, .error, nil: return nil
        default: return reply
        }
    }

    private func store(_ frame: Data) async throws(MeshError) -> Bool {
        try await store(
            NewMessage(
                device: device, receivedAt: wallClock().milliseconds, key: MessageKey(frame).bytes, frame: frame,
                origin: nil))
    }

    /// Puts a message into the journal and tells the clients and the bus. False if it was there already.
    @discardableResult
    private func store(_ message: NewMessage) async throws(MeshError) -> Bool {
        unstored = message
        let entry = try await journal.append(message)
        unstored = nil
        guard let entry else {
            counters.messagesRepeated += 1
            return false
        }
        counters.messagesStored += 1
        newest = entry
        announceMessage(entry)
        for client in clients.values.sorted(by: { $0.id < $1.id }) {
            if case .fetching(let command) = client.work {
                messagesFetched(client, command)
            } else {
                tellOfMessages(client)
            }
        }
        return true
    }

    // MARK: Journal → client

    /// APP_START: who the client is decides where it goes on reading.
    func join(_ client: VirtualCompanion, as frame: Data) {
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

    /// Gives the client the cursor of its identity; a new one begins some messages before the newest.
    private func becomeMember(_ id: UInt64, name: String) async {
        guard let client = clients[id], let share = shares[client.connection.share] else { return }
        let address = client.connection.identityAddress
        await deadOnesLeave(name: name, address: address, share: client.connection.share)
        // What one that has left was being given may have to be taken back.
        while departures > 0 { await withCheckedContinuation { departed.append($0) } }
        let base = "\(share.settings.identityName)\n\(name)\n\(address)"
        let slot = slots.join(base: base, client: id, now: loop.now)
        let identity = ClientIdentity(share: share.settings.identityName, name: name, address: address, slot: slot)
        guard client.membership?.identity != identity else { return }
        do {
            let stored = try await journal.cursor(of: identity, device: device)
            var cursor = stored ?? 0
            if stored == nil {
                // Perhaps it is the same program, come back before its dead connection was noticed.
                if let sibling = siblings(of: identity).max(by: { $0.confirmed < $1.confirmed }) {
                    cursor = sibling.confirmed
                } else {
                    cursor = try await journal.sequence(before: settings.backlog, of: device)
                }
                try await journal.setCursor(cursor, of: identity, device: device)
            }
            if newest == nil {
                newest = try await journal.entries(
                    of: device, after: journal.head(of: device) - 1, limit: 1
                ).last
            }
            log(
                .debug, "a client's place in the messages",
                [("client", "\(id)"), ("identity", "\(identity)"), ("after", "\(cursor)")])
            clients[id]?.membership = VirtualCompanion.Membership(
                identity: identity, cursor: cursor, confirmed: cursor)
        } catch {
            log(.error, "a client's place in the messages is not known", [("error", "\(error)")])
        }
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

    /// Tells the client that messages wait for it, as the radio would.
    func tellOfMessages(_ client: VirtualCompanion) {
        guard let cursor = client.membership?.cursor, let newest, newest.sequence > cursor else { return }
        push(client, Data([PushCode.messageWaiting.rawValue]))
    }

    /// Pushes are held back so long after a message, unless the client says something before.
    private static let holdTime = Duration.milliseconds(100)

    /// SYNC_NEXT_MESSAGE.
    func nextMessage(for client: VirtualCompanion, _ command: Data) {
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
        if clients[id]?.membership == nil { await becomeMember(id, name: "") }
        do {
            // That it asks for the next one shows that it has the one before.
            clients[id]?.membership?.confirm()
            guard let (entry, frame) = try await nextVisible(for: id) else { return nothingFor(id, command) }
            guard let membership = clients[id]?.membership else { return }
            // Before the client gets it: after a crash of the host it must not come twice.
            try await journal.setCursor(entry.sequence, of: membership.identity, device: device)
            guard let client = clients[id] else {
                return try await journal.setCursor(
                    membership.confirmed, of: membership.identity, device: device, rewinding: true)
            }
            counters.messagesDelivered += 1
            client.membership?.given(entry.sequence, isInputEnded: client.connection.isInputEnded)
            if client.inbox.isEmpty { client.hold = (loop.now + Self.holdTime, []) }
            answer(client, frame)
            armTimer()
        } catch {
            log(.error, "a client's message could not be read", [("error", "\(error)")])
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

    /// A message has come, or the radio has no more.
    func messagesFetched(_ client: VirtualCompanion, _ command: Data) {
        nextMessage(for: client, command)
    }

    /// The client has gone: where it did not get its last message, its identity will get it again.
    func leaveMessages(_ client: VirtualCompanion) {
        if client.usesJournal {
            departing.insert(client.id)
            departures += 1
        }
        let wasOrderly = client.connection.wasAcknowledged
        let heard = client.connection.lastHeard
        if let handover = slots.left(client: client.id, isGraceful: wasOrderly, lastHeard: heard) { takeOver(handover) }
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
            log(.error, "a client's place in the messages could not be stored", [("error", "\(error)")])
        }
    }

    /// A program that had come back before its dead connection was noticed goes on in its own place.
    private func takeOver(_ handover: ClientSlots.Handover) {
        guard let client = clients[handover.client], let old = client.membership else { return }
        let identity = ClientIdentity(
            share: old.identity.share, name: old.identity.name, address: old.identity.address, slot: handover.slot)
        client.membership?.identity = identity
        departures += 1
        storeInBackground {
            await $0.rewind(VirtualCompanion.Membership(identity: identity, cursor: old.cursor, confirmed: old.cursor))
            $0.departureEnded()
        }
    }

    // MARK: Echo

    /// Other clients get a channel message that this one sent, as from the radio itself, if their share wants it: the
    /// protocol has no frame for what a radio sent (reference §2.1, 9).
    func echo(_ command: Data, _ client: VirtualCompanion) {
        guard shares.values.contains(where: { $0.settings.echoes }),
            case .sendChannelText(let text)? = try? CompanionCommand(decoding: command)
        else { return }
        let name = cache.selfInfo?.name ?? device
        let message = ReceivedMessage(
            source: .channel(index: text.channel), snrQuarters: 0, pathByte: PathByte.none.rawValue,
            textType: TextType.plain.rawValue, timestamp: text.timestamp, text: "\(name): \(text.text)")
        guard let frame = try? message.encoded(version: 3) else { return }
        let origin = client.membership?.identity.description ?? "client \(client.id)"
        storeInBackground { await $0.storeEcho(frame, origin) }
    }

    private func storeEcho(_ frame: Data, _ origin: String) async {
        let message = NewMessage(
            device: device, receivedAt: wallClock().milliseconds, key: Data("echo".utf8) + MessageKey(frame).bytes,
            frame: frame, origin: origin)
        do {
            guard let entry = try await journal.append(message) else { return }
            newest = entry
            for client in clients.values where shares[client.connection.share]?.settings.echoes == true {
                if client.membership?.identity.description != origin { tellOfMessages(client) }
            }
        } catch {
            log(.error, "an echo could not be stored", [("error", "\(error)")])
        }
    }

    // MARK: Tasks

    /// Runs what uses the journal and belongs to no link; ``shutDown()`` waits for it.
    private func storeInBackground(_ body: @escaping @Sendable (isolated RadioSession) async -> Void) {
        storesUnderWay += 1
        Task.immediate(executorPreference: loop.taskExecutor) {
            await body(self)
            self.storeFinished()
        }
    }

    private func journalTaskEnded(client id: UInt64) {
        clients[id]?.usesJournal = false
        if departing.remove(id) != nil { departureEnded() }
    }

    private func departureEnded() {
        departures -= 1
        guard departures == 0 else { return }
        for waiter in departed { waiter.resume() }
        departed = []
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
        if storesUnderWay > 0 { await withCheckedContinuation { storesEnded = $0 } }
    }

    /// Runs what has to wait for the journal, one at a time for each client.
    private func runTask(
        for client: VirtualCompanion, _ body: @escaping @Sendable (isolated RadioSession, UInt64) async -> Void
    ) {
        let id = client.id
        client.usesJournal = true
        storeInBackground {
            await body($0, id)
            $0.journalTaskEnded(client: id)
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
    mutating func given(_ sequence: Int64, isInputEnded: Bool) {
        cursor = sequence
        isInDoubt = isInputEnded
    }

    /// An entry is not for the client: nothing of it can be lost.
    mutating func passedOver(_ sequence: Int64) {
        if confirmed == cursor { confirmed = sequence }
        cursor = sequence
    }
}

extension Duration {
    fileprivate var milliseconds: Int64 { components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000 }
}
