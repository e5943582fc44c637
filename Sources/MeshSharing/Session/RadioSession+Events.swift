// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshJournal
internal import MeshRuntime
internal import MeshTransportAPI

extension RadioSession {
    /// Puts what a push says on the bus, if people care about it. (The frame itself is told by the coordinator.)
    func announce(_ push: Data) {
        guard let type = push.first.flatMap(PushCode.init).flatMap(Self.eventType) else { return }
        bus.publish(type, device: device, .json(CompanionFrame.json(push, .fromRadio)))
    }

    /// Tells which radio it is.
    func announceRadio(_ selfInfo: Data) {
        bus.publish("radio.info", device: device, .json(CompanionFrame.json(selfInfo, .fromRadio)))
    }

    /// Tells of a message that is in the journal now.
    func announceMessage(_ entry: JournalEntry) {
        guard let type = entry.frame.first.flatMap(ReplyCode.init).flatMap(Self.eventType(ofMessage:)) else { return }
        bus.publish(
            type, device: device, .json(Self.described(entry.frame, .fromRadio, ["message": .int(entry.sequence)])))
    }

    /// Tells who sent what into the mesh.
    func announceSend(_ command: Data, _ client: VirtualCompanion) {
        var facts: [String: JSONValue] = [
            "client": .int(Int64(clamping: client.id)), "peer": .string(client.connection.peer),
        ]
        if let identity = client.membership?.identity { facts["app"] = .string(identity.name) }
        bus.publish("message.sent", device: device, .json(Self.described(command, .fromClient, facts)))
    }

    private static func described(
        _ frame: Data, _ direction: FrameDirection, _ facts: [String: JSONValue]
    ) -> JSONValue {
        .object((CompanionFrame.json(frame, direction).objectValue ?? [:]).merging(facts) { $1 })
    }

    private static func eventType(ofMessage reply: ReplyCode) -> EventType? {
        switch reply {
        case .contactMessage, .contactMessageV3: return "message.direct"
        case .channelMessage, .channelMessageV3: return "message.channel"
        case .channelData: return "message.data"
        default: return nil
        }
    }

    /// The event for a push. RX logs have none: they are by far the most frequent, and whoever wants them asks for `frame`.
    private static func eventType(_ push: PushCode) -> EventType? {
        switch push {
        case .advert, .newAdvert: return "advert"
        case .pathUpdated: return "path"
        case .sendConfirmed: return "ack"
        case .messageWaiting: return "message.waiting"
        case .trace: return "trace"
        case .contactDeleted, .contactsFull: return "contacts"
        case .loginSuccess, .loginFailed: return "login"
        case .statusResponse: return "status"
        case .telemetryResponse: return "telemetry"
        case .rawData, .receivedPacketLog, .binaryResponse, .pathDiscovery, .controlData: return nil
        }
    }
}
