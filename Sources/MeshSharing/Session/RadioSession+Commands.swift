// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshLoop
internal import MeshRuntime
internal import MeshTransportAPI
internal import MeshWire

/// Clients' commands: what the host answers itself, what goes to the radio, and what waits for what.
extension RadioSession {
    /// One frame came from a client.
    func frameReceived(_ frame: Data, from client: VirtualCompanion) {
        // The firmware gives up a contact list when its app starts anew, without an end frame (reference §1.4).
        if case .listing = client.work, client.inbox.isEmpty, frame.first == CommandCode.appStart.rawValue {
            client.work = nil
        }
        client.received(frame)
        release(client)
        serve(client)
    }

    /// How many more commands of a client may be parsed now.
    func room(for client: VirtualCompanion) -> Int { Self.commandsPerClient - client.inbox.count }

    private static let commandsPerClient = 64

    /// Does the client's commands until one has to wait.
    func serve(_ client: VirtualCompanion) {
        guard !client.isBeingServed else { return }
        client.isBeingServed = true
        while clients[client.id] != nil, let command = client.takeNext() {
            client.connection.noticeReset()
            guard clients[client.id] != nil else { break }
            begin(command, client)
            if client.connection.hasRest, client.inbox.count < 16 { client.connection.parseOn() }
        }
        client.isBeingServed = false
        if client.isIdle { flushLater(client) }
    }

    /// The command being done has been answered.
    func finished(_ client: VirtualCompanion) {
        client.work = nil
        serve(client)
    }

    /// Answers the command being done, and goes on with the next.
    func answer(_ client: VirtualCompanion, _ frame: Data) {
        give(client, frame)
        finished(client)
    }

    private func refuse(_ client: VirtualCompanion, _ code: CompanionErrorCode) {
        counters.commandsRefused += 1
        give(client, CompanionFrame.error(code))
    }

    private func begin(_ frame: Data, _ client: VirtualCompanion) {
        // The proof of a token, which this share does not ask for. No radio is bothered with it.
        if frame.first == ShareProof.code { return refuse(client, .unsupported) }
        switch CommandAdmission.of(frame, role: client.role) {
        case .refused(let refusal):
            counters.commandsRefused += 1
            give(client, refusal)
        case .admitted(let expectation):
            let frame = Self.wellFormed(frame)
            guard isSound(frame) else {
                // The firmware knows no other control data than with the highest bit set.
                let isControlData = frame.first == CommandCode.sendControlData.rawValue
                return refuse(client, isControlData ? .unsupported : .illegalArgument)
            }
            perform(frame, expectation, client)
        }
    }

    /// A default scope that is not whole means none to the firmware; meshcore_py 2.3.17 sends one that is a byte short.
    private static func wellFormed(_ frame: Data) -> Data {
        frame.first == CommandCode.setDefaultScope.rawValue && frame.count < 48 ? frame.prefix(1) : frame
    }

    /// Whether the fields make sense: the firmware trusts a path's length, for one. Commands that nobody knows pass.
    private func isSound(_ frame: Data) -> Bool {
        guard let command = try? CompanionCommand(decoding: frame) else { return false }
        if case .setTime(let time) = command {
            // The firmware never sets its clock back: a time far ahead would stay for good.
            let limit = wallClock().components.seconds + 86_400
            return limit < Self.earliestTime || Int64(time) <= limit
        }
        return true
    }

    private func perform(_ frame: Data, _ expectation: ReplyExpectation, _ client: VirtualCompanion) {
        switch frame.first.flatMap(CommandCode.init) {
        case .appStart:
            join(client, as: frame)
        case .syncNextMessage:
            nextMessage(for: client, frame)
        case .getContacts:
            listContacts(frame, expectation, client)
        case .setFloodScope:
            counters.answeredHere += 1
            guard scopes.accepts(frame) else { return give(client, CompanionFrame.error(.unsupported)) }
            client.scope = .frame(frame)
            give(client, CompanionFrame.reply(.ok))
        case .signStart, .signData, .signFinish:
            sign(frame, expectation, client)
        default:
            if frame.first == CommandCode.deviceQuery.rawValue { client.version = frame[frame.startIndex + 1] }
            read(frame, expectation, client)
        }
    }

    /// Answers a read from the cache where that is sure, or where nothing better is to be had.
    func read(_ frame: Data, _ expectation: ReplyExpectation, _ client: VirtualCompanion) {
        switch cache.lookup(Self.adapted(frame), now: loop.now) {
        case .answer(let reply):
            answerHere(client, frame, reply)
        case .stale(let reply) where !isServing:
            answerHere(client, frame, reply)
        case .stale, .unknown, .uncached:
            submit(frame, expectation, client)
        }
    }

    private func answerHere(_ client: VirtualCompanion, _ command: Data, _ reply: [Data]) {
        counters.answeredHere += 1
        for frame in reply { give(client, view(frame, client)) }
        answered(client, command)
    }

    private func sign(_ frame: Data, _ expectation: ReplyExpectation, _ client: VirtualCompanion) {
        // Without the radio the signature waits for it or is refused, and what is to be signed stays where it is: it is cut
        // to the frames of the link that takes it.
        if !isServing, frame.first == CommandCode.signFinish.rawValue, client.signing.hasBegun {
            return submit(frame, expectation, client)
        }
        let longest = min(maximumFrame, CompanionFraming.maximumPayload)
        switch client.signing.received(frame, maximumFrame: longest) {
        case nil:
            submit(frame, expectation, client)
        case .reply(let reply):
            counters.answeredHere += 1
            give(client, reply)
        case .transaction(let commands):
            let lead = commands.dropLast().map {
                LaneEntry.Lead($0, expecting: $0.first == CommandCode.signStart.rawValue ? .one(.signStart) : .one(.ok))
            }
            submit(frame, expectation, client, after: lead)
        }
    }

    // MARK: To the radio

    /// Gives the command to the lane; without a link a send waits a little, anything else is refused.
    func submit(
        _ frame: Data, _ expectation: ReplyExpectation, _ client: VirtualCompanion, after lead: [LaneEntry.Lead] = []
    ) {
        guard frame.count <= maximumFrame else { return refuse(client, .illegalArgument) }
        let isSend = PacketEstimate.length(of: frame) != nil
        guard isServing else {
            guard isLinkWanted, settings.sendWait > .zero, isSend || waitsForLink(frame) else {
                counters.commandsWhileAway += 1
                return give(client, CompanionFrame.error(.badState))
            }
            client.work = .link(frame, until: loop.now + settings.sendWait)
            return armTimer()
        }
        guard takeAirtime(for: frame, client) else {
            counters.airtimeRefused += 1
            return give(client, CompanionFrame.error(.tableFull))
        }
        let isMeshRequest = MeshRequestStateMachine.isMeshRequest(frame)
        let entry = LaneEntry(
            translated(frame, client), expecting: expectation, after: lead, priority: isSend ? .send : .read,
            isMeshRequest: isMeshRequest)
        let wait = loop.now + settings.meshRequestWait
        switch lane.entryReceived(entry, from: LaneRequester(client: client.id)) {
        case .queued:
            client.work = isMeshRequest ? .meshLane(frame, until: wait) : .lane(frame)
            pump()
        case .refuseLinkAway, .refuseQueueFull:
            // Not reached: the link is there, and a client has one command in the lane.
            give(client, CompanionFrame.error(.badState))
        }
    }

    /// Whether the radio is nearly there, or the client is only beginning: it may have come before the first handshake.
    private func waitsForLink(_ frame: Data) -> Bool {
        switch frame.first.flatMap(CommandCode.init) {
        case .appStart, .deviceQuery: true
        default: link != nil
        }
    }

    private func takeAirtime(for frame: Data, _ client: VirtualCompanion) -> Bool {
        guard shares[client.connection.share]?.airtime.isUnlimited == false,
            let length = PacketEstimate.length(of: frame, nameLength: cache.selfInfo?.name.utf8.count ?? 31),
            let cost = cache.modulation?.timeOnAir(length)
        else { return true }
        return shares[client.connection.share]?.airtime.take(cost, now: loop.now) ?? true
    }

    /// The command as it goes to the radio: which keeps one protocol version for everybody, and knows traces by a tag that
    /// two clients may have chosen alike.
    private func translated(_ frame: Data, _ client: VirtualCompanion) -> Data {
        frame.first == CommandCode.sendTracePath.rawValue
            ? traces.translate(frame, from: client.id, tag: .random(in: 1 ... .max), now: loop.now)
            : Self.adapted(frame)
    }

    /// The host's own version stays in force.
    private static func adapted(_ frame: Data) -> Data {
        frame.first == CommandCode.deviceQuery.rawValue
            ? CompanionFrame.deviceQuery(version: CompanionFrame.hostProtocolVersion) : frame
    }

    // MARK: From the radio

    /// A frame answers a command that the host or a client has sent.
    func replied(_ frame: Data, to command: Data?, _ requester: LaneRequester, isLast: Bool) {
        guard requester != .host else {
            // The parts of an answer are rows of the contacts.
            if isLast { hostAnswered(.success(frame)) } else { _ = cache.contactsReceived(frame) }
            return
        }
        if isLast { learn(frame, from: command, by: requester) }
        guard let client = clients[requester.client] else { return }
        var frame = frame
        if let command, let original = sentCommand(client) {
            frame = receipt(frame, for: command, original, client)
        }
        give(client, view(frame, client))
        guard isLast else { return }
        if let original = sentCommand(client) { answered(client, original) }
        finished(client)
    }

    private func sentCommand(_ client: VirtualCompanion) -> Data? {
        switch client.work {
        case .lane(let command), .meshLane(let command, _): command
        default: nil
        }
    }

    /// What the reply to a command teaches: the cache, the scope, who waits for what. Other clients are told of changes.
    func learn(_ reply: Data, from command: Data?, by requester: LaneRequester = .host) {
        guard let command else { return }
        if MeshRequestStateMachine.isMeshRequest(command) { meshRequests.receiptReceived(reply, now: loop.now) }
        if command.first == CommandCode.setFloodScope.rawValue {
            switch reply {
            case CompanionFrame.error(.unsupported): scopes.refused(command)
            case _ where reply.first == ReplyCode.ok.rawValue: scopes.scopeSet(command)
            default: scopes.doubt()
            }
        }
        if command == CompanionFrame.getTime { timeTold(reply) }
        for push in cache.replied(reply, to: command, now: loop.now) {
            broadcast(push) { $0.id != requester.client }
        }
    }

    /// A reply as this client may see it.
    private func view(_ reply: Data, _ client: VirtualCompanion) -> Data {
        CompanionFrame.shown(reply, to: client.role)
    }

    /// The client has the reply to this command.
    private func answered(_ client: VirtualCompanion, _ command: Data) {
        if command.first == CommandCode.appStart.rawValue { tellOfMessages(client) }
    }

    // MARK: The link's coming and going, and waiting too long

    /// Clients are served again: what waited for the link goes out.
    func linkOpened(_ client: VirtualCompanion) {
        switch client.work {
        case .link(let frame, _), .contacts(let frame):
            client.work = nil
            begin(frame, client)
            serve(client)
        default: break
        }
    }

    /// No link will come until somebody asks for one: what waits for it is refused.
    func linkUnwanted(_ client: VirtualCompanion) {
        guard case .link = client.work else { return }
        counters.commandsWhileAway += 1
        answer(client, CompanionFrame.error(.badState))
    }

    /// Clients are not served any more.
    func linkClosed(_ client: VirtualCompanion) {
        switch client.work {
        case .contacts(let frame): contactsReady(client, frame)
        case .fetching(let frame): nextMessage(for: client, frame)
        // It told the radio to go away, and is owed nothing.
        case .lane, .meshLane: finished(client)
        case .journal, .link, .listing, nil: break
        }
        client.connection.parseOn()
        flushLater(client)
    }

    /// The command being done has waited as long as it may.
    func waitedTooLong(_ client: VirtualCompanion) {
        if let hold = client.hold, hold.until <= loop.now { heldLongEnough(client) }
        switch client.work {
        case .link(_, let until) where until > loop.now, .meshLane(_, let until) where until > loop.now:
            break
        case .link:
            counters.commandsWhileAway += 1
            answer(client, CompanionFrame.error(.badState))
        case .meshLane:
            lane.requesterLeft(LaneRequester(client: client.id))
            counters.meshRequestsRefused += 1
            answer(client, CompanionFrame.error(.tableFull))
        default: break
        }
    }
}
