// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI
internal import MeshWire

/// Requests to other nodes. The radio keeps one of them (``MeshRequestStateMachine``), so they take turns; a trace is none
/// of them. Each waits for its answer as long as the radio's receipt says and a little more, and throws
/// `operation.timeout` when it does not come, and `radio.not-found` if the radio does not have the node as a contact.
extension MeshCoreSession {
    // MARK: Login

    /// Logs in to a repeater or a room server. Throws `link.authentication-failed` when the node refuses.
    public func login(to node: PublicKey, password: String) async throws(MeshError) -> LoginSuccess {
        try await request(.sendLogin(Login(publicKey: node, password: password))) { push throws(MeshError) in
            switch push {
            case .loginSuccess(let success): return success
            case .loginFailed:
                throw MeshError(.authenticationFailed, "the node refused the login; is the password right?")
            default: return nil
            }
        }
    }

    /// Ends what a login began. The node is not told; the radio no longer keeps the connection alive.
    public func logout(from node: PublicKey) async throws(MeshError) {
        try await confirm(.logout(node))
    }

    // MARK: Status and sensors

    /// A repeater's or a room server's counters.
    public func status(of node: PublicKey) async throws(MeshError) -> NodeStatus {
        try await request(.sendStatusRequest(node)) { push in
            if case .statusResponse(let response) = push { response.status } else { nil }
        }
    }

    /// What a node's sensors say, up to a reading of an unknown kind, which hides those after it: the event
    /// ``MeshSessionEvent/telemetry(_:)`` has all bytes.
    public func telemetry(of node: PublicKey) async throws(MeshError) -> [CayenneLPP.Reading] {
        try await request(.sendTelemetryRequest(node)) { push in
            if case .telemetryResponse(let response) = push {
                CayenneLPP.decodeStart(response.payload).readings
            } else {
                nil
            }
        }
    }

    // MARK: Binary requests

    /// Asks a node that this radio has logged in to.
    public func binaryRequest(_ request: BinaryRequest, to node: PublicKey) async throws(MeshError) -> BinaryAnswer {
        let bytes = try encode { () throws(FieldError) in try request.encoded() }
        let payload = try await payload(.sendBinaryRequest(NodeRequest(publicKey: node, request: bytes)))
        return try decode(.sendBinaryRequest) { () throws(DecodeError) in
            try BinaryAnswer(decoding: payload, to: request)
        }
    }

    /// The extremes and means of a sensor's values between two times, both in seconds ago; with the node's clock.
    public func minMaxAverage(
        of node: PublicKey, from startSecondsAgo: UInt32, to endSecondsAgo: UInt32 = 0
    ) async throws(MeshError) -> (clock: UInt32, ranges: [BinaryAnswer.SensorRange]) {
        let request = BinaryRequest.minMaxAverage(startSecondsAgo: startSecondsAgo, endSecondsAgo: endSecondsAgo)
        guard case .minMaxAverage(let clock, let ranges) = try await binaryRequest(request, to: node) else {
            throw unreadableAnswer
        }
        return (clock, ranges)
    }

    /// Who may do what on a node. Only administrators get an answer.
    public func accessList(of node: PublicKey) async throws(MeshError) -> [BinaryAnswer.AccessEntry] {
        guard case .accessList(let entries) = try await binaryRequest(.accessList, to: node) else {
            throw unreadableAnswer
        }
        return entries
    }

    /// Whose node it is. Only servers of firmware level 2 answer (``LoginSuccess/firmwareLevel``).
    public func owner(of node: PublicKey) async throws(MeshError) -> BinaryAnswer.OwnerInfo {
        guard case .owner(let info) = try await binaryRequest(.owner, to: node) else { throw unreadableAnswer }
        return info
    }

    /// All repeaters that a repeater hears, asked for page by page until it has told as many as it has.
    ///
    /// `order`: 0 newest first, 1 oldest first, 2 strongest first, 3 weakest first. `prefixLength`: how many bytes of each
    /// key.
    public func neighbours(
        of node: PublicKey, order: UInt8 = 0, prefixLength: UInt8 = 4
    ) async throws(MeshError) -> [BinaryAnswer.Neighbour] {
        var found: [BinaryAnswer.Neighbour] = []
        while let offset = UInt16(exactly: found.count) {
            let request = NeighboursRequest(
                offset: offset, order: order, prefixLength: prefixLength, nonce: environment.random())
            guard case .neighbours(let total, let page) = try await binaryRequest(.neighbours(request), to: node) else {
                throw unreadableAnswer
            }
            found += page
            if page.isEmpty || found.count >= total { break }
        }
        return found
    }

    /// Asks a repeater that this radio has not logged in to.
    public func anonymousRequest(
        _ request: AnonymousRequest, to node: PublicKey
    ) async throws(MeshError) -> AnonymousAnswer {
        let bytes = try encode { () throws(FieldError) in try request.encoded() }
        let payload = try await payload(.sendAnonymousRequest(NodeRequest(publicKey: node, request: bytes)))
        return try decode(.sendAnonymousRequest) { () throws(DecodeError) in
            try AnonymousAnswer(decoding: payload, to: request)
        }
    }

    // MARK: Paths

    /// Finds the ways to a node and back, by flooding.
    public func discoverPath(to node: PublicKey) async throws(MeshError) -> PathDiscovery {
        try await request(.sendPathDiscovery(node)) { push in
            if case .pathDiscovery(let discovery) = push { discovery } else { nil }
        }
    }

    /// Sends a packet along a path and learns how well each node heard the one before.
    ///
    /// `path`: the hashes of the nodes, one after the other, each of `hashSize` bytes: 1, 2, 4 or 8. Several traces may be
    /// under way at once. Throws `argument.invalid` for no whole number of hashes, or none.
    public func trace(
        _ path: Data, hashSize: Int = 1, authCode: UInt32 = 0
    ) async throws(MeshError) -> TraceResult {
        guard let flags = [1, 2, 4, 8].firstIndex(of: hashSize) else {
            throw MeshError(.invalidArgument, "a hash in a trace has 1, 2, 4 or 8 bytes, not \(hashSize)")
        }
        var tag = environment.random()
        while slots.values.contains(where: { if case .trace(tag) = $0.purpose { true } else { false } }) { tag &+= 1 }
        let command = try encode(
            .sendTracePath(TraceRequest(tag: tag, authCode: authCode, flags: UInt8(flags), path: path)))
        let answers = try await ask(command, .trace(tag: tag))
        if let reply = answers.replies.last { _ = try decode(reply, to: command) }
        guard let push = answers.push, case .trace(let result) = try decode(push: push, to: command) else {
            throw .unreadable(command)
        }
        return result
    }

    // MARK: Helpers

    /// Sends a request and takes what the answer says.
    private func request<Value>(
        _ command: CompanionCommand, _ value: (CompanionPush) throws(MeshError) -> Value?
    ) async throws(MeshError) -> Value {
        let frame = try encode(command)
        let answers = try await ask(frame, .request)
        if let reply = answers.replies.last { _ = try decode(reply, to: frame) }
        guard let push = answers.push, let value = try value(try decode(push: push, to: frame)) else {
            throw .unreadable(frame)
        }
        return value
    }

    private func payload(_ command: CompanionCommand) async throws(MeshError) -> Data {
        try await request(command) { push in
            if case .binaryResponse(let response) = push { response.payload } else { nil }
        }
    }

    private func encode(_ request: () throws(FieldError) -> Data) throws(MeshError) -> Data {
        do throws(FieldError) {
            return try request()
        } catch {
            throw MeshError(error, "the request")
        }
    }

    private func decode<Answer>(
        _ command: CommandCode, _ answer: () throws(DecodeError) -> Answer
    ) throws(MeshError) -> Answer {
        do throws(DecodeError) {
            return try answer()
        } catch {
            throw .unreadable(Data([command.rawValue]), error)
        }
    }

    private var unreadableAnswer: MeshError { .unreadable(Data([CommandCode.sendBinaryRequest.rawValue])) }
}
