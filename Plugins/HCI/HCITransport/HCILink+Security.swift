// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshCrypto
internal import MeshLoop
internal import MeshTransportAPI

/// Encryption and pairing.
extension HCILink {
    func pair() async throws(GATTError) -> PairingOutcome {
        try requireUp(.pair)
        let wasBonded = bond != nil
        let protection = try await secure()
        return PairingOutcome(wasBonded: wasBonded, usedPasskey: protection == .authenticated)
    }

    /// Makes the link as secure as the passkey and the stored keys allow. When the caller is cancelled the link ends: a pairing
    /// that was left half done is of no use to anybody (Core Specification 5.4, Vol 3 Part H §3.4).
    func secure() async throws(GATTError) -> AttributeDatabase.Protection {
        // A link may have ended in the turn it began in.
        try requireUp(.pair)
        if Task.isCancelled { throw .cancelled(.pair, peerName) }
        let number = beginWait()
        let result: Result<AttributeDatabase.Protection, GATTError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if let end = self.end { return continuation.resume(returning: .failure(end)) }
                self.securers.append(continuation)
                self.perform(self.machine.secureRequested(now: self.loop.now))
            }
        } onCancel: { [loop] in
            loop.perform { self.assumeIsolated { $0.abandon(number) } }
        }
        waits.remove(number)
        switch result {
        case .success(let protection): return protection
        case .failure where Task.isCancelled: throw .cancelled(.pair, peerName)
        case .failure(let error): throw error
        }
    }

    /// Stores a new bond once the peer has all of its keys. A link that ends before leaves none: the peer would not know it, and
    /// be taken for one that has lost its bond (R32).
    func storeSentBond() {
        guard let unsentBond, !hasUnsent else { return }
        self.unsentBond = nil
        keep(unsentBond)
    }

    func secured(_ result: Result<AttributeDatabase.Protection, GATTError>) {
        let waiters = securers
        securers = []
        for waiter in waiters { waiter.resume(returning: result) }
    }

    var staleBond: GATTError {
        GATTError(
            .bondStale, .authenticationFailed, "\(peerName) has lost the keys, or they do not match", .pair, peerName)
    }

    /// A pairing with material that nothing else is made with.
    func preparePairing() {
        var random = SystemRandomNumberGenerator()
        func bytes() -> [UInt8] { (0..<16).map { _ in .random(in: 0...255, using: &random) } }
        let keyPair: P256.KeyPair
        do {
            keyPair = try P256.KeyPair.generate()
        } catch {
            secured(
                .failure(
                    GATTError(.other, .internalError, "no keys can be made for a pairing: \(error)", .pair, peerName)))
            return
        }
        let material = PairingStateMachine.Material(
            keyPair: keyPair, nonces: (0..<20).map { _ in bytes() },
            longTermKey: LongTermKey(key: bytes(), random: random.next(), diversifier: .random(in: 1 ... .max)))
        // Without a passkey nobody could enter one.
        var configuration = PairingStateMachine.Configuration(
            connection, own: own, capability: passkey == nil ? .noInputNoOutput : .keyboardOnly,
            requiresAuthentication: passkey != nil)
        configuration.timeout = controller.deadlines.pairing
        perform(
            machine.pairingPrepared(
                PairingStateMachine(configuration, material: material, passkey: passkey?.value), now: loop.now))
    }

    /// The peer may not try again at once. Returns whether this host is to.
    func blockPairing(_ failure: PairingFailure) -> Bool {
        let (until, passes) = controller.assumeIsolated { controller in
            // A new private address is no new peer.
            let identity = controller.identity(of: connection.peer)
            let passes = controller.attempts.pairingFailed(identity, failure, now: loop.now)
            return (controller.attempts.blockedUntil(identity, now: loop.now), passes)
        }
        machine.pairingBlocked(until: until)
        return passes
    }
}
