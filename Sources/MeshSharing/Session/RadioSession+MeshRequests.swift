// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshLoop
internal import MeshRuntime

/// Answers from the mesh, which come as pushes: each to who asked.
extension RadioSession {
    /// Gives a push to whose it is; false for one that is nobody's in particular.
    func route(_ frame: Data) -> Bool {
        switch frame.first.flatMap(PushCode.init) {
        case .loginSuccess, .loginFailed, .statusResponse, .telemetryResponse, .binaryResponse, .pathDiscovery:
            routeAnswer(frame)
        case .trace:
            routeTrace(frame)
        case .sendConfirmed:
            routeAcknowledgement(frame)
        default:
            false
        }
    }

    private func routeAnswer(_ frame: Data) -> Bool {
        switch meshRequests.pushReceived(frame, now: loop.now) {
        case .answer(let requester):
            announce(frame)
            deliver(frame, to: requester)
            // The next mesh request may go.
            pump()
        case .late(let requester):
            announce(frame)
            deliver(frame, to: requester)
        case .orphan:
            counters.orphanAnswers += 1
            announce(frame)
            pump()
        case .notMine:
            // The radio's own telemetry is the reply to a command; the lane knows.
            if frame.first == PushCode.telemetryResponse.rawValue,
                lane.commandInFlight.map(Self.asksOwnTelemetry) ?? false
            {
                return false
            }
            // Asked for by another interface of the radio, or by an earlier life of this host.
            counters.orphanAnswers += 1
            announce(frame)
        }
        return true
    }

    private static func asksOwnTelemetry(_ command: Data) -> Bool {
        command.first == CommandCode.sendTelemetryRequest.rawValue && command.count == 4
    }

    private func deliver(_ frame: Data, to requester: LaneRequester) {
        if let client = clients[requester.client] { push(client, frame) } else { counters.orphanAnswers += 1 }
    }

    private func routeTrace(_ frame: Data) -> Bool {
        announce(frame)
        if case .client(let id, let translated) = traces.pushReceived(frame, now: loop.now), let client = clients[id] {
            push(client, translated)
        } else {
            counters.orphanAnswers += 1
        }
        return true
    }

    private func routeAcknowledgement(_ frame: Data) -> Bool {
        announce(frame)
        guard case .sendConfirmed(let confirmation)? = try? CompanionPush(decoding: frame) else { return true }
        switch acks.confirmed(confirmation.acknowledgement, now: loop.now) {
        case .client(let id):
            if let client = clients[id] { push(client, frame) }
        case .gone:
            break
        case .unknown:
            // Its sender may have come back since under another number; nobody else is harmed by it.
            broadcast(frame)
        }
        return true
    }

    /// The reply to a send as the client expects it, with what follows from it: where its acknowledgement or trace goes, and
    /// what others are told of it.
    func receipt(
        _ frame: Data, for command: Data, _ original: Data, _ client: VirtualCompanion
    ) -> Data {
        switch command.first.flatMap(CommandCode.init) {
        case .sendTracePath:
            return traces.receipt(frame)
        case .sendTextMessage:
            guard case .sent(let receipt)? = try? CompanionReply(decoding: frame) else { return frame }
            acks.sent(
                ack: receipt.tag, by: client.id,
                estimatedTimeout: .milliseconds(Int64(receipt.timeoutMilliseconds)), now: loop.now)
            announceSend(original, client)
        case .sendChannelText where frame.first == ReplyCode.ok.rawValue:
            announceSend(original, client)
            echo(original, client)
        default:
            break
        }
        return frame
    }
}
