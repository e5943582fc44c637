// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The server of one bearer (Core Specification 5.4, Vol 3 Part F §3.4, Part G §4).
///
///     request ──▶ answered in the same turn        write ──▶ handed to the driver, and answered
///     command ──▶ done, or ignored                 CCCD  ──▶ subscription changed, and answered
///
///     ┌──────┐ indicationRequested  ┌─────────┐ confirmation
///     │ idle │ ───────────────────▶ │ waiting │ ─────────────▶ idle
///     └──────┘                      └────┬────┘
///                                        └─ 30 s: the bearer is over (§3.3.3)
///
/// Which client wants notifications is kept for each link, as Part G §3.3.3.3 has it: a client that is bonded finds its
/// configuration again when the driver hands it to the next link's machine; any other begins without. What a write may
/// hold besides its length is the application's business, which the specification lets a server refuse; this host takes
/// all.
public struct ATTServerStateMachine: ~Copyable, Sendable {
    public struct Configuration: Sendable {
        /// What the exchange answers.
        public var ownMTU = 517
        public var indicationTimeout: Duration = .seconds(30)
        /// How many bytes of prepared writes may wait.
        public var prepareLimit = 1024

        public init() {}
    }

    /// What to do, in this order.
    public struct Action: Sendable, Hashable {
        /// The answer.
        public var response: [UInt8]?
        public var event: Event?
    }

    public enum Event: Sendable, Hashable {
        /// A client wrote a value.
        case written(handle: UInt16, [UInt8])
        case subscriptionChanged(valueHandle: UInt16, notifies: Bool, indicates: Bool)
        /// The client told its MTU; the client of this host may use the lesser of both.
        case mtuExchanged(peer: Int)
        case indicationConfirmed
        case closeLink
    }

    public var database: AttributeDatabase
    /// What the link is now.
    public var protection: AttributeDatabase.Protection = .open
    /// CCCDs that are not 0, by the handle of the value they configure.
    public private(set) var subscriptions: [UInt16: UInt16]
    public private(set) var mtu = 23
    private let configuration: Configuration
    private var prepared: [(handle: UInt16, offset: UInt16, value: [UInt8])] = []
    private var indicationDeadline: Duration?
    private var hasEnded = false

    /// `subscriptions` are those that a bonded client left behind.
    public init(
        _ database: AttributeDatabase, subscriptions: [UInt16: UInt16] = [:],
        configuration: Configuration = Configuration()
    ) {
        self.database = database
        self.configuration = configuration
        self.subscriptions = subscriptions.filter { (database[$0.key]?.properties ?? 0) & 0x30 != 0 }
    }

    /// When ``deadlineReached(now:)`` is due.
    public var nextDeadline: Duration? { indicationDeadline }

    // MARK: Values to the client

    /// A notification, if the client wants it and the link is as secure as its subscription had to be. A value that
    /// does not fit is refused, not cut (R18).
    public func notification(_ handle: UInt16, _ value: [UInt8]) -> [UInt8]? {
        guard isSubscribed(handle, 1), value.count <= mtu - 3 else { return nil }
        return ATTPacket.notification(handle, value).bytes
    }

    /// An indication, if the client wants it and has confirmed the last.
    public mutating func indicationRequested(_ handle: UInt16, _ value: [UInt8], now: Duration) -> [UInt8]? {
        guard isSubscribed(handle, 2), value.count <= mtu - 3, indicationDeadline == nil else {
            return nil
        }
        indicationDeadline = now + configuration.indicationTimeout
        return ATTPacket.indication(handle, value).bytes
    }

    /// A bonded client's subscription is there before the link is encrypted, but its values have to wait.
    private func isSubscribed(_ handle: UInt16, _ bit: UInt16) -> Bool {
        guard !hasEnded, let attribute = database[handle] else { return false }
        return (subscriptions[handle] ?? 0) & bit != 0 && protection >= attribute.subscriptionProtection
    }

    /// The client's MTU became known by the exchange that this host began.
    public mutating func clientExchangedMTU(_ mtu: Int) { self.mtu = mtu }

    /// The link has ended; nothing is sent any more.
    public mutating func bearerEnded() {
        hasEnded = true
        indicationDeadline = nil
        prepared.removeAll()
    }

    /// Early calls change nothing.
    public mutating func deadlineReached(now: Duration) -> Action {
        guard let indicationDeadline, indicationDeadline <= now else { return Action() }
        self.indicationDeadline = nil
        return Action(event: .closeLink)
    }

    // MARK: Requests

    /// A packet for which ``ATTOpcode/isForClient(_:)`` does not hold.
    public mutating func packetReceived(_ bytes: [UInt8]) -> Action {
        guard !hasEnded, let opcode = bytes.first else { return Action() }
        // Bit 6 marks commands, which are never answered (§3.3.1).
        let isCommand = opcode & 0x40 != 0
        let packet: ATTPacket
        do {
            packet = try ATTPacket.decode(bytes.span.bytes)
        } catch {
            return isCommand || opcode == ATTOpcode.confirmation.rawValue ? Action() : refuse(opcode, 0, .invalidPDU)
        }
        do throws(Refusal) {
            return try answer(packet)
        } catch {
            return isCommand ? Action() : refuse(opcode, error.handle, error.code)
        }
    }

    /// Why a request is refused, and at which attribute.
    struct Refusal: Error {
        var code: ATTErrorCode
        var handle: UInt16

        init(_ code: ATTErrorCode, _ handle: UInt16 = 0) {
            self.code = code
            self.handle = handle
        }
    }

    private mutating func answer(_ packet: ATTPacket) throws(Refusal) -> Action {
        switch packet {
        case .exchangeMTURequest(let peer):
            mtu = min(configuration.ownMTU, max(23, Int(peer)))
            return Action(
                response: ATTPacket.exchangeMTUResponse(UInt16(clamping: configuration.ownMTU)).bytes,
                event: .mtuExchanged(peer: Int(peer)))
        case .findInformationRequest(let range): return Action(response: try findInformation(range).bytes)
        case .findByTypeValueRequest(let range, let type, let value):
            return Action(response: try findByTypeValue(range, type, value).bytes)
        case .readByTypeRequest(let range, let type): return Action(response: try readByType(range, type).bytes)
        case .readByGroupTypeRequest(let range, let type):
            return Action(response: try readByGroupType(range, type).bytes)
        case .readRequest(let handle):
            return Action(response: ATTPacket.readResponse(Array(try read(handle).prefix(mtu - 1))).bytes)
        case .readBlobRequest(let handle, let offset):
            let value = try read(handle)
            guard Int(offset) <= value.count else { throw Refusal(.invalidOffset, handle) }
            return Action(
                response: ATTPacket.readBlobResponse(Array(value.dropFirst(Int(offset)).prefix(mtu - 1))).bytes)
        case .writeRequest(let handle, let value):
            return Action(response: ATTPacket.writeResponse.bytes, event: try write(handle, value))
        case .writeCommand(let handle, let value):
            try requireWritable(handle, isCommand: true)
            return Action(event: value.count <= 512 ? .written(handle: handle, value) : nil)
        case .prepareWriteRequest(let handle, let offset, let value):
            return Action(response: try prepare(handle, offset, value).bytes)
        case .executeWriteRequest(let commits): return try execute(commits: commits)
        case .confirmation:
            guard indicationDeadline != nil else { return Action() }
            indicationDeadline = nil
            return Action(event: .indicationConfirmed)
        case .errorResponse, .exchangeMTUResponse, .findInformationResponse, .findByTypeValueResponse,
            .readByTypeResponse, .readResponse, .readBlobResponse, .readByGroupTypeResponse, .writeResponse,
            .prepareWriteResponse, .executeWriteResponse, .notification, .indication:
            return Action()
        case .other(let opcode):
            // A response to nothing is not answered; what is unknown is (§3.3.1), commands aside.
            if ATTOpcode.isForClient(opcode) { return Action() }
            throw Refusal(.requestNotSupported)
        }
    }

    private func refuse(_ opcode: UInt8, _ handle: UInt16, _ code: ATTErrorCode) -> Action {
        Action(response: ATTPacket.errorResponse(request: opcode, handle: handle, code).bytes)
    }

    // MARK: Values

    /// What a read gives. A link that is not secure enough learns so, but nothing of the value.
    func read(_ handle: UInt16) throws(Refusal) -> [UInt8] {
        guard let attribute = database[handle] else { throw Refusal(.invalidHandle, handle) }
        guard let needed = attribute.readProtection else { throw Refusal(.readNotPermitted, handle) }
        try require(needed, handle)
        if case .clientConfiguration(let valueHandle) = attribute.kind {
            let bits = subscriptions[valueHandle] ?? 0
            return [UInt8(truncatingIfNeeded: bits), UInt8(bits >> 8)]
        }
        return attribute.value
    }

    private func require(_ needed: AttributeDatabase.Protection, _ handle: UInt16) throws(Refusal) {
        guard protection < needed else { return }
        // Encrypted, but not well enough: authentication is what is missing (Vol 3 Part C §10.3.1).
        throw Refusal(
            needed == .authenticated ? .insufficientAuthentication : .insufficientEncryption, handle)
    }

    private func requireWritable(_ handle: UInt16, isCommand: Bool) throws(Refusal) {
        guard let attribute = database[handle] else { throw Refusal(.invalidHandle, handle) }
        guard let needed = isCommand ? attribute.commandProtection : attribute.writeProtection else {
            throw Refusal(.writeNotPermitted, handle)
        }
        try require(needed, handle)
    }

    private mutating func write(_ handle: UInt16, _ value: [UInt8]) throws(Refusal) -> Event {
        try requireWritable(handle, isCommand: false)
        guard value.count <= 512 else { throw Refusal(.invalidValueLength, handle) }
        guard case .clientConfiguration(let valueHandle) = database[handle]?.kind else {
            return .written(handle: handle, value)
        }
        guard value.count == 2 else { throw Refusal(.invalidValueLength, handle) }
        // Bits for what the characteristic does not offer are not taken (Part G §3.3.3.3).
        let properties = database[valueHandle]?.properties ?? 0
        let offered: UInt16 = (properties & 0x10 != 0 ? 1 : 0) | (properties & 0x20 != 0 ? 2 : 0)
        let bits = (UInt16(value[0]) | UInt16(value[1]) << 8) & offered
        subscriptions[valueHandle] = bits == 0 ? nil : bits
        return .subscriptionChanged(valueHandle: valueHandle, notifies: bits & 1 != 0, indicates: bits & 2 != 0)
    }

    // MARK: Prepared writes (Vol 3 Part F §3.4.6)

    private mutating func prepare(_ handle: UInt16, _ offset: UInt16, _ value: [UInt8]) throws(Refusal) -> ATTPacket {
        // The answer has the part in it, so one that is longer than the client may send could not be answered.
        guard value.count <= mtu - 5 else { throw Refusal(.invalidPDU, handle) }
        try requireWritable(handle, isCommand: false)
        guard prepared.reduce(value.count, { $0 + $1.value.count }) <= configuration.prepareLimit, prepared.count < 64
        else { throw Refusal(.prepareQueueFull, handle) }
        prepared.append((handle, offset, value))
        return .prepareWriteResponse(handle, offset: offset, value)
    }

    private mutating func execute(commits: Bool) throws(Refusal) -> Action {
        let parts = prepared
        prepared.removeAll()
        let response = ATTPacket.executeWriteResponse.bytes
        guard commits, let handle = parts.first?.handle else { return Action(response: response) }
        // One value at a time is what clients do, and all that one event can tell.
        guard parts.allSatisfy({ $0.handle == handle }) else { throw Refusal(.unlikelyError, handle) }
        var value: [UInt8] = []
        for part in parts {
            guard Int(part.offset) <= value.count else { throw Refusal(.invalidOffset, handle) }
            let end = min(value.count, Int(part.offset) + part.value.count)
            value.replaceSubrange(Int(part.offset)..<end, with: part.value)
        }
        return Action(response: response, event: try write(handle, value))
    }
}
