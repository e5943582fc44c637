// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshRuntime
internal import MeshTransportAPI
internal import MeshWire

extension RadioSession {
    /// Puts what a frame says on the bus, if people care about it. (The frame itself is told by the coordinator.)
    func announce(_ frame: Data, _ action: CommandLaneStateMachine.FrameAction) {
        guard let first = frame.first, let type = Self.eventType(first) else { return }
        switch action {
        case .late, .fenceAnswered:
            return
        case .push, .pushEndsCommand, .reply, .orphan, .observation:
            bus.publish(type, device: device, .json(CompanionFrame.json(frame, .fromRadio)))
        }
    }

    /// Tells which radio it is.
    func announceRadio(_ selfInfo: Data) {
        bus.publish("radio.info", device: device, .json(CompanionFrame.json(selfInfo, .fromRadio)))
    }

    /// The event for a frame with this first byte. RX logs have none: they are by far the most frequent, and whoever
    /// wants them asks for `frame`.
    private static func eventType(_ first: UInt8) -> EventType? {
        if let push = PushCode(rawValue: first) {
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
        switch ReplyCode(rawValue: first) {
        case .contactMessage, .contactMessageV3: return "message.direct"
        case .channelMessage, .channelMessageV3: return "message.channel"
        default: return nil
        }
    }
}
