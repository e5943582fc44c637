// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshCrypto
internal import MeshLoop
public import MeshTransportAPI
internal import MeshWire

/// From a connection to a client: TLS, and the proof of a token.
extension RadioSession {
    /// In the place of the secret of a token that a share does not have.
    private static let standIn = "no token has this as its secret: it has never been one"

    /// What a share's clients need for TLS, if they do; finds out now whether what it is made of can be used.
    func accessContext(of settings: ShareSettings) throws(MeshError) -> TLSContext? {
        do {
            if !settings.tokens.isEmpty { _ = try ShareProof.code(secret: Self.standIn, nonce: [], name: []) }
            return try settings.tls.map { try TLSContext(serverCertificates: $0.certificates, key: $0.key) }
        } catch {
            throw MeshError(.configurationInvalid, "\(settings.name): \(error)", cause: error)
        }
    }

    /// Other tokens and another certificate from now on: files may have been renewed. Clients keep their connections, but for
    /// those of a token that is not the same any more. Throws, and changes nothing, when the certificate cannot be used.
    public func renewAccess(ofShare number: Int, tokens: [ShareToken], tls: ShareTLS?) throws(MeshError) {
        guard let old = shares[number]?.settings, old.tokens != tokens || old.tls != tls else { return }
        var settings = old
        settings.tokens = tokens
        settings.tls = tls
        let context = try accessContext(of: settings)
        shares[number]?.settings = settings
        shares[number]?.tls = context
        for client in clients.values where client.connection.share == number {
            if settings.admits(client.connection.admission) { continue }
            client.connection.closeAfterFlush()
            clientLeft(client, settings, .denied)
        }
    }

    /// A connection came that has something to show first.
    func enter(_ connection: ShareClient, _ settings: ShareSettings) {
        if shares[connection.share]?.failures.isBarred(connection.origin, now: loop.now) == true {
            return refuse(connection, .barred)
        }
        let others = entrants.values.filter { $0.connection.share == connection.share }
        if others.count >= Entrant.limit, let oldest = others.min(by: { $0.connection.id < $1.connection.id }) {
            turnAway(oldest, .crowd)
        }
        let entrant = Entrant(connection, hasProof: !settings.tokens.isEmpty, loop: loop)
        entrants[connection.id] = entrant
        watch(entrant, for: ShareAccessStateMachine.timeLimit)
        let loop = loop
        connection.start(
            ShareClient.Callbacks(
                now: { loop.now },
                // What comes behind the proof is the client's.
                room: { 1 },
                onFrame: { [unowned entrant] frame in self.proofReceived(frame, from: entrant) },
                // Who has no frame to begin with has no proof: it speaks TLS to a share without, for one.
                onNoise: { [unowned entrant] in self.turnAway(entrant, .proof) },
                onInputEnd: { [unowned entrant] in self.turnAway(entrant, .proof) },
                onDrained: {},
                onLeave: { [unowned entrant] _ in
                    self.turnAway(entrant, entrant.connection.hasFailedTLS ? .tls : .proof)
                }),
            onOpen: { [unowned entrant] in if entrant.access == nil { self.admit(entrant, nil) } })
    }

    private func watch(_ entrant: Entrant, for time: Duration) {
        entrant.timer.schedule(after: time) { [unowned entrant] in self.deadlineReached(entrant) }
    }

    func deadlineReached(_ entrant: Entrant) {
        // Without a proof there is no machine: only TLS was waited for.
        switch entrant.access?.deadlineReached(now: loop.now) ?? .close {
        case .close:
            turnAway(entrant, .timeout)
        case .none:
            // A timer that was early must not be the last one.
            if let deadline = entrant.access?.nextDeadline { watch(entrant, for: deadline - loop.now) }
        }
    }

    private func proofReceived(_ frame: Data, from entrant: Entrant) {
        let connection = entrant.connection
        guard let tokens = shares[connection.share]?.settings.tokens else { return }
        switch entrant.access?.frameReceived(frame) ?? .ignore {
        case .drawChallenge(let name):
            let token = tokens.first { name == Array($0.name.utf8) }
            let failures = shares[connection.share]?.failures
            if failures?.isBarred(connection.origin, token: token?.name, now: loop.now) == true {
                return turnAway(entrant, .barred)
            }
            challenge(entrant, name: name, token)
        case .admit(_, let reply):
            // The token may have been taken away since its code was asked for, or have another secret. Nobody guesses here.
            guard let token = entrant.token, tokens.contains(token) else {
                send(ShareProof.failed, to: connection)
                return turnAway(entrant, .proof)
            }
            send(reply, to: connection)
            admit(entrant, token)
        case .refuse(let reply, let isFailure):
            guard isFailure,
                let lateness = shares[connection.share]?.failures.failed(
                    connection.origin, token: entrant.token?.name, now: loop.now), lateness > .zero
            else {
                send(reply, to: connection)
                return turnAway(entrant, .proof)
            }
            // It keeps its place among those that are waited for, so it can be no crowd by asking again.
            entrant.timer.schedule(after: lateness) { [unowned entrant] in
                self.send(reply, to: connection)
                self.turnAway(entrant, .proof)
            }
        case .ignore:
            break
        }
    }

    private func challenge(_ entrant: Entrant, name: [UInt8], _ token: ShareToken?) {
        var generator = SystemRandomNumberGenerator()
        let nonce = (0..<ShareProof.nonceByteCount).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        do throws(CryptoError) {
            let code = try ShareProof.code(secret: token?.secret ?? Self.standIn, nonce: nonce, name: name)
            entrant.token = token
            let action = entrant.access?.challengeDrawn(nonce: nonce, code: code, isKnown: token != nil)
            if case .send(let frame)? = action { send(frame, to: entrant.connection) }
        } catch {
            log(.error, "a token could not be asked for", [("error", "\(error)")])
            turnAway(entrant, .proof)
        }
    }

    /// It is a client from now on.
    private func admit(_ entrant: Entrant, _ token: ShareToken?) {
        let connection = entrant.connection
        guard let settings = shares[connection.share]?.settings else { return }
        // Others may have come in while it showed what it had, and the share may have got its first tokens.
        if isFull(connection.share, settings) { return turnAway(entrant, .full) }
        if !settings.admits(token) { return turnAway(entrant, .proof) }
        // The last answer may have been the end of it.
        guard entrants.removeValue(forKey: connection.id) != nil else { return }
        entrant.timer.cancel()
        connection.admit(token)
        connection.become(join(connection, settings))
    }

    private func turnAway(_ entrant: Entrant, _ why: Refusal) {
        guard entrants.removeValue(forKey: entrant.connection.id) != nil else { return }
        entrant.timer.cancel()
        refuse(entrant.connection, why)
    }

    /// The share is closed.
    func closeEntrants(of number: Int) {
        for entrant in entrants.values where entrant.connection.share == number {
            entrants[entrant.connection.id] = nil
            entrant.timer.cancel()
            entrant.connection.close()
        }
    }

    private func send(_ frame: Data, to connection: ShareClient) {
        var framed: [UInt8] = []
        // A proof's frames are short.
        frame.withUnsafeBytes {
            try? CompanionFrameEncoder(marker: .fromRadio).encode(RawSpan(_unsafeBytes: $0), into: &framed)
        }
        connection.offer(framed, .precious)
        connection.flush()
    }
}
