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
/// journal does not take is kept and tried again before any other is read. A message that comes otherwise than as the
/// answer to the host's question goes into the journal all the same: nobody will give it out again.
extension RadioSession {
    /// So many messages in a row that the journal has already end the fetching.
    private static let repeatLimit = 32

    /// Fetches the radio's messages, if that is not being done yet.
    func fetchMessages() {
        guard stage == .serving, fetching.wanted() else { return }
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
                    repeats = try await store(newMessage(frame)) ? 0 : repeats + 1
                }
            } while fetching.radioIsEmpty()
        } catch {
            // A journal that fails tells so itself, once.
            log(.debug, "messages were not fetched", [("error", "\(error)")])
        }
        fetching.ended(now: loop.now)
        for client in clients.values.sorted(by: { $0.id < $1.id }) {
            if case .fetching(let command) = client.work { nextMessage(for: client, command) }
        }
        armTimer()
    }

    /// The radio's next message; nil if it has none.
    private func nextFromRadio() async throws(MeshError) -> Data? {
        try await storeKept()
        // The link may have gone on to its end meanwhile. What is left stays in the radio.
        guard stage == .serving else { throw MeshError(.cancelled, "the link is being ended") }
        let command = Data([CommandCode.syncNextMessage.rawValue])
        let reply = try await ask(command, expecting: CommandSpec.expectation(for: command))
        switch reply.first.flatMap(ReplyCode.init) {
        case .noMoreMessages, .error, nil: return nil
        default: return reply
        }
    }

    /// A frame came that is not the answer to the host's question for a message. It may be one: an answer that is late, or one
    /// to another interface of the radio, which may have taken ours for its own. One that is there already is found by its
    /// key. There may be more behind it; behind one that is there already another question would find none.
    func storeStray(_ frame: Data) {
        guard MessageView.isMessage(frame) else { return }
        let message = newMessage(frame)
        storeInBackground {
            do {
                if try await $0.store(message) { $0.fetchMessages() }
            } catch {
                $0.log(.error, "a message that came unasked is not in the journal yet", [("error", "\(error)")])
            }
        }
    }

    /// What the journal did not take is tried again.
    func storeKept() async throws(MeshError) {
        while let (number, message) = unstored.first {
            try await append(message)
            unstored.stored(number)
        }
    }

    private func newMessage(_ frame: Data) -> NewMessage {
        let key = MessageKey(frame)
        return NewMessage(
            device: device, receivedAt: wallClock().milliseconds, key: key.bytes, frame: frame, origin: nil,
            duplicateWindow: key.window)
    }

    /// Puts a message into the journal, or keeps it for later if that fails. False if it was there already.
    private func store(_ message: NewMessage) async throws(MeshError) -> Bool {
        do {
            return try await append(message)
        } catch {
            if !unstored.keep(message) {
                counters.messagesLost += 1
                log(.error, "a message is lost: too many wait for the journal")
            }
            throw error
        }
    }

    /// Puts a message into the journal and tells the clients and the bus. False if it was there already.
    @discardableResult
    private func append(_ message: NewMessage) async throws(MeshError) -> Bool {
        guard let entry = try await journal.append(message) else {
            counters.messagesRepeated += 1
            return false
        }
        counters.messagesStored += 1
        noteNewest(entry)
        announceMessage(entry)
        for client in clients.values.sorted(by: { $0.id < $1.id }) {
            if case .fetching(let command) = client.work {
                nextMessage(for: client, command)
            } else {
                tellOfMessages(client)
            }
        }
        return true
    }

    /// An entry is in the journal. One that was read or stored before a newer one may be told of after it, and clients do not
    /// look behind the newest.
    func noteNewest(_ entry: JournalEntry?) {
        guard let entry, entry.sequence > newest?.sequence ?? 0 else { return }
        newest = entry
    }

    // MARK: A journal that failed

    /// The journal may take messages again: those that it did not take, then those that the radio has kept. Clients that have
    /// no place yet, since it could not be looked up, are told to ask.
    public func journalIsWritable() {
        if stage == .serving {
            fetchMessages()
        } else {
            // There is nothing to fetch: the radio is away, or not greeted yet.
            storeInBackground { try? await $0.storeKept() }
        }
        let waiting = clients.values.filter { $0.membership == nil }.sorted { $0.id < $1.id }
        for client in waiting { push(client, Data([PushCode.messageWaiting.rawValue])) }
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
            noteNewest(entry)
            for client in clients.values where shares[client.connection.share]?.settings.echoes == true {
                if client.membership?.identity.description != origin { tellOfMessages(client) }
            }
        } catch {
            log(.info, "an echo could not be stored", [("error", "\(error)")])
        }
    }

}
