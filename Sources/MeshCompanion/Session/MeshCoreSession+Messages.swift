// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI
internal import MeshWire

/// What a radio hands out when it is asked for the next message.
public enum FetchedMessage: Sendable, Hashable {
    case text(ReceivedMessage)
    /// A datagram of a channel.
    case data(ReceivedChannelData)

    /// Decodes a reply to SYNC_NEXT_MESSAGE; nil for other frames.
    init?(_ frame: Data) throws(DecodeError) {
        switch frame.first.flatMap(ReplyCode.init) {
        case .contactMessage, .channelMessage, .contactMessageV3, .channelMessageV3, .channelData: break
        default: return nil
        }
        switch try CompanionReply(decoding: frame) {
        case .message(let message): self = .text(message)
        case .channelData(let data): self = .data(data)
        default: return nil
        }
    }

    var event: MeshSessionEvent {
        switch self {
        case .text(let message): .message(message)
        case .data(let data): .channelData(data)
        }
    }
}

/// How a message is sent again when no acknowledgement comes.
public struct SendRetries: Sendable, Hashable {
    /// How often the message is sent at most. (Three: meshcore_py 2.3.17, `send_msg_with_retry`, as what follows.)
    public var attempts = 3
    /// After how many attempts over the known path the path is forgotten, so that the rest are flooded.
    public var attemptsBeforeFlood = 2
    /// How many attempts may be flooded.
    public var floodAttempts = 2

    public init(attempts: Int = 3, attemptsBeforeFlood: Int = 2, floodAttempts: Int = 2) {
        self.attempts = attempts
        self.attemptsBeforeFlood = attemptsBeforeFlood
        self.floodAttempts = floodAttempts
    }

    /// Once, over the path that the radio knows.
    public static let none = SendRetries(attempts: 1)
}

/// A message that was acknowledged.
public struct SendSuccess: Sendable, Hashable {
    /// The receipt of the last attempt.
    public var receipt: SentReceipt
    /// How many attempts were made.
    public var attempts: Int
    public var confirmation: SendConfirmation
}

extension MeshCoreSession {
    // MARK: Sending

    /// Sends a text to a contact and waits until its acknowledgement has come.
    ///
    /// Each attempt waits as long as the radio's receipt says and a little more; an acknowledgement that comes late still
    /// counts. Throws `message.unacknowledged` when none came, `radio.not-found` if the radio does not have the contact,
    /// and `radio.table-full` when it has no room for another packet.
    public func send(
        _ text: String, to contact: PublicKey, retries: SendRetries = SendRetries()
    ) async throws(MeshError) -> SendSuccess {
        let id = nextNumber()
        deliveries[id] = Delivery()
        defer { deliveries[id] = nil }
        let timestamp = uniqueTimestamp()
        var floods = 0
        for attempt in 0..<max(1, retries.attempts) {
            if attempt == retries.attemptsBeforeFlood, floods == 0 { try await forgetPath(to: contact) }
            let message = OutgoingText(
                attempt: UInt8(truncatingIfNeeded: attempt), timestamp: timestamp, recipient: contact.prefix, text: text
            )
            let receipt = try await send(message, delivery: id)
            if let confirmation = try await confirmation(of: id) {
                return SendSuccess(receipt: receipt, attempts: attempt + 1, confirmation: confirmation)
            }
            if receipt.isFlood { floods += 1 }
            if floods >= max(1, retries.floodAttempts) { break }
        }
        throw MeshError(.messageUnacknowledged, "the message was sent and not acknowledged; it may have arrived")
    }

    /// The radio then floods. A path it does not know of is none to forget.
    private func forgetPath(to contact: PublicKey) async throws(MeshError) {
        do throws(MeshError) {
            try await resetPath(of: contact)
        } catch {
            if error.disposition != .permanent { throw error }
        }
    }

    /// Sends a text once and waits for nothing but the radio's receipt. The acknowledgement is an event.
    public func send(_ message: OutgoingText) async throws(MeshError) -> SentReceipt {
        try await send(message, delivery: nil)
    }

    private func send(_ message: OutgoingText, delivery: UInt64?) async throws(MeshError) -> SentReceipt {
        try await ask(.sendTextMessage(message), delivery.map { .text(delivery: $0) } ?? .command) {
            if case .sent(let receipt) = $0 { receipt } else { nil }
        }
    }

    /// Sends a command line to a node that this radio has logged in to. What the node says comes as a message; nothing
    /// acknowledges it.
    public func sendCommandLine(_ line: String, to node: PublicKey) async throws(MeshError) -> SentReceipt {
        try await send(
            OutgoingText(type: .commandLine, timestamp: uniqueTimestamp(), recipient: node.prefix, text: line))
    }

    /// Sends a text to a channel. The radio puts its name in front and cuts what is longer than 160 bytes with it.
    /// Nothing acknowledges it.
    public func sendToChannel(_ text: String, channel: UInt8) async throws(MeshError) {
        try await confirm(
            .sendChannelText(OutgoingChannelText(channel: channel, timestamp: uniqueTimestamp(), text: text)))
    }

    /// Sends a datagram to a channel.
    public func sendChannelData(_ data: OutgoingChannelData) async throws(MeshError) {
        try await confirm(.sendChannelData(data))
    }

    /// Sends a raw datagram over a path.
    public func sendRawData(_ data: OutgoingRawData) async throws(MeshError) {
        try await confirm(.sendRawData(data))
    }

    /// Sends a control packet to the neighbours; its first byte is 0x80 or more.
    public func sendControlData(_ data: Data) async throws(MeshError) {
        try await confirm(.sendControlData(data))
    }

    /// Sends a whole packet as it is.
    public func sendRawPacket(_ packet: OutgoingRawPacket) async throws(MeshError) {
        try await confirm(.sendRawPacket(packet))
    }

    /// The time of day, or a second after the last message's: two like texts of the same second are one message to the
    /// mesh, and have one acknowledgement (companion-protocol §1.8).
    private func uniqueTimestamp() -> UInt32 {
        lastTimestamp = max(environment.date(), lastTimestamp &+ 1)
        return lastTimestamp
    }

    /// Waits for the acknowledgement of any attempt; nil when it did not come in time.
    private func confirmation(of id: UInt64) async throws(MeshError) -> SendConfirmation? {
        await withTaskCancellationHandler {
            await withCheckedContinuation {
                // Whoever has woken it before it waits has taken the deadline away.
                if deliveries[id]?.confirmation == nil, deliveries[id]?.deadline != nil {
                    deliveries[id]?.waiter = $0
                } else {
                    $0.resume()
                }
            }
        } onCancel: {
            Task(executorPreference: environment.executor) { await self.wake(id) }
        }
        if let confirmation = deliveries[id]?.confirmation { return confirmation }
        guard case .up = phase else { throw endReason ?? notStarted }
        if Task.isCancelled { throw Self.callerGaveUp }
        return nil
    }

    private func wake(_ id: UInt64) {
        deliveries[id]?.wake()
    }

    // MARK: Fetching

    /// Fetches the next message; nil when there is none. It is also told as an event. Only of use where the settings do
    /// not say that messages are fetched anyway.
    public func nextMessage() async throws(MeshError) -> FetchedMessage? {
        try await nextMessage(.command)
    }

    private func nextMessage(_ purpose: CommandSlot.Purpose) async throws(MeshError) -> FetchedMessage? {
        let command = try encode(.syncNextMessage)
        guard let frame = try await ask(command, purpose).replies.last else { throw .unreadable(command) }
        if frame.first == ReplyCode.noMoreMessages.rawValue { return nil }
        _ = try decode(frame, to: command)
        do throws(DecodeError) {
            if let message = try FetchedMessage(frame) { return message }
        } catch {
            throw .unreadable(command, error)
        }
        throw .unreadable(command)
    }

    /// Fetches all messages that the radio has, if somebody listens.
    func fetchMessages() {
        guard settings.fetchesMessages, isServing, !subscribers.isEmpty else { return }
        wantsFetch = true
        guard !isFetching else { return }
        isFetching = true
        begin { await $0.fetchAll() }
    }

    private func fetchAll() async {
        while wantsFetch {
            wantsFetch = false
            do throws(MeshError) {
                while try await fetchOne() {}
            } catch {
                // The next message that comes, or the next poll, begins anew.
                environment.log(.info, "fetching messages failed", [("error", "\(error)")])
            }
        }
        isFetching = false
        let waiters = fetchWaiters
        fetchWaiters = []
        for waiter in waiters { waiter.resume() }
    }

    /// Whether there may be more. One that cannot be read is gone from the radio, and told as such.
    private func fetchOne() async throws(MeshError) -> Bool {
        do throws(MeshError) {
            return try await nextMessage(.fetch) != nil
        } catch {
            if error.code == .radioUnreadable { return true }
            throw error
        }
    }

    /// Fetches all messages, if somebody listens, and waits for the end.
    func fetched() async {
        fetchMessages()
        await withCheckedContinuation { if isFetching { fetchWaiters.append($0) } else { $0.resume() } }
    }
}
