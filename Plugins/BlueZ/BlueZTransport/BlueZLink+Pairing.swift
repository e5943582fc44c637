// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshDBus
internal import MeshLoop
internal import MeshTransportAPI

extension BlueZLink {
    /// The agent has 60 s (BlueZ `src/agent.c`).
    private static let pairTime = Duration.seconds(120)

    func pair() async throws(GATTError) -> PairingOutcome {
        try requireUp(.pair(passkeyWasAsked: false))
        if await service.objects.devices[path]?.isBonded == true {
            return PairingOutcome(wasBonded: true, usedPasskey: false)
        }
        guard await service.registerAgent() else {
            try requireUp(.pair(passkeyWasAsked: false))
            throw failure(.agentNotTaken, .pair(passkeyWasAsked: false))
        }
        let path = path
        while true {
            await service.pairingBegan(path)
            let error: DBusError
            do throws(DBusError) {
                _ = try await call(path, BlueZNames.device, "Pair", timeout: Self.pairTime)
                let attempt = await service.pairingEnded(path)
                await service.pairingSucceeded(path)
                await trust()
                return PairingOutcome(usedPasskey: attempt.passkeyWasAsked)
            } catch let caught {
                error = caught
            }
            let attempt = await service.pairingEnded(path)
            switch BlueZFailure(error, during: .pair(passkeyWasAsked: attempt.passkeyWasAsked)) {
            case .alreadyDone: return PairingOutcome(wasBonded: true, usedPasskey: false)
            case .inProgress:
                // A pairing that the device, or another program, began: it ends, with whatever result.
                try requireUp(.pair(passkeyWasAsked: false))
                do throws(CancellationError) {
                    try await loop.sleep(for: .milliseconds(500))
                } catch {
                    throw .cancelled(.pair(passkeyWasAsked: false), peer: peerName)
                }
            case .cancelled:
                await loop.uncancelled { [service] in
                    _ = try? await service.call(path, BlueZNames.device, "CancelPairing")
                }
                throw failure(error, .pair(passkeyWasAsked: attempt.passkeyWasAsked))
            default: throw pairingFailure(error, attempt)
            }
        }
    }

    /// So that bluetoothd lets it connect by itself, and asks no agent about it.
    private func trust() async {
        do throws(DBusError) {
            try await service.set(path, BlueZNames.device, "Trusted", .bool(true))
        } catch {
            settings.log(.info, "Trusted could not be set", [("peer", peerName), ("error", error.description)])
        }
    }

    /// What the agent was asked says more than bluetoothd's error, and than a link that radios end after a failed pairing.
    private func pairingFailure(_ error: DBusError, _ attempt: PairingBook.Attempt) -> GATTError {
        let operation = BlueZOperation.pair(passkeyWasAsked: attempt.passkeyWasAsked)
        let text: String
        switch attempt.refusal {
        case .noPasskey?, .notConfigured?: text = "\(peerName) asks for a pin; give it in the option pin"
        case .needsPerson?:
            text =
                "\(peerName) wants a person to compare two numbers, and a pin is configured; leave the option pin out, "
                + "or pair with `bluetoothctl pair`"
        case nil:
            return pairingFailure(BlueZFailure(error, during: operation), error, attempt)
        }
        return GATTError(
            .pairingFailed,
            MeshError(.authenticationFailed, text, cause: error, context: .init(operation: "pair", peer: peerName)))
    }

    /// What bluetoothd's error means where the agent refused nothing. Only a person can mend a wrong pin, so nothing else may
    /// pass for one: a link that was lost, and a pairing that nobody answered, are tried again.
    private func pairingFailure(
        _ failure: BlueZFailure, _ error: DBusError, _ attempt: PairingBook.Attempt
    ) -> GATTError {
        let operation = BlueZOperation.pair(passkeyWasAsked: attempt.passkeyWasAsked)
        var meaning = failure
        switch failure {
        case .passkeyWrong:
            // Radios end the link after a wrong pin; one that has just stopped answering has not refused anything.
            if case .lost(let loss) = state, loss.error.code == .connectionTimeout { return loss }
        case .pairingTimeout:
            if !isUp || !attempt.passkeyWasAsked { meaning = .pairingInterrupted }
        case .pairingRejected:
            if service.assumeIsolated({ $0.book.rejectionMayPass(self.path) }) { meaning = .pairingInterrupted }
        case .agentNotAsked where isUp: break
        default: return self.failure(error, operation)
        }
        return GATTError(meaning, during: operation, peer: peerName, adapter: adapterName, cause: error)
    }
}

extension BlueZService {
    fileprivate func pairingSucceeded(_ path: String) {
        book.pairingSucceeded(path)
    }

    fileprivate func pairingBegan(_ path: String) {
        book.pairingBegan(path)
    }

    fileprivate func pairingEnded(_ path: String) -> PairingBook.Attempt {
        defer { defaultAgentChanged() }
        return book.pairingEnded(path)
    }
}
