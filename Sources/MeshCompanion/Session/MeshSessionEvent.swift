// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI

/// What a ``MeshCoreSession`` tells its subscribers. Answers to requests are told too, whoever asked.
public enum MeshSessionEvent: Sendable, Equatable {
    /// Which events a subscriber loses that is too slow.
    public enum Overflow: Sendable, Hashable {
        /// Those that wait longest.
        case dropOldest
        /// Those that come.
        case dropNewest
    }

    /// The session is that far. With the reason when a link ended that nobody had stopped.
    case state(MeshSessionState, reason: MeshError?)
    /// Who the radio is and how it is set.
    case radio(SelfInfo)
    /// A text message, fetched from the radio.
    case message(ReceivedMessage)
    /// A datagram of a channel, fetched from the radio.
    case channelData(ReceivedChannelData)
    /// The acknowledgement of a message came.
    case acknowledged(SendConfirmation)
    /// A contact has sent an advert.
    case advert(PublicKey)
    /// A node that the radio does not keep as a contact has sent an advert.
    case discovered(Contact)
    /// The way to a contact has changed.
    case pathUpdated(PublicKey)
    /// The copy of the contacts is complete, for the first time on this link.
    case contactsFetched(count: Int)
    /// A contact is new, or has changed.
    case contactChanged(Contact)
    /// The radio does not have the contact any more.
    case contactRemoved(PublicKey)
    /// The radio has no room for more contacts.
    case contactsFull
    /// The radio has messages.
    case messagesWaiting
    case login(LoginSuccess)
    case loginFailed(KeyPrefix)
    case status(StatusResponse)
    case telemetry(TelemetryResponse)
    case binaryResponse(BinaryResponse)
    case pathDiscovered(PathDiscovery)
    case trace(TraceResult)
    case rawData(ReceivedRawData)
    case controlData(ReceivedControlData)
    /// The radio heard a packet. By far the most frequent event.
    case heard(ReceivedPacketLog)
    /// The radio's clock was behind by so much, and has been set.
    case clockCorrected(by: Duration)
    /// A push of another firmware.
    case unknown(code: UInt8, bytes: Data)
    /// A frame that could not be read.
    case unreadable(Data)
    /// So many events did not reach this subscriber, which was too slow.
    case dropped(count: Int)
}

extension MeshSessionEvent {
    /// What a push tells.
    init(_ push: CompanionPush) {
        self =
            switch push {
            case .advert(let key): .advert(key)
            case .pathUpdated(let key): .pathUpdated(key)
            case .sendConfirmed(let confirmation): .acknowledged(confirmation)
            case .messageWaiting: .messagesWaiting
            case .rawData(let data): .rawData(data)
            case .loginSuccess(let login): .login(login)
            case .loginFailed(let node): .loginFailed(node)
            case .statusResponse(let status): .status(status)
            case .receivedPacketLog(let packet): .heard(packet)
            case .trace(let trace): .trace(trace)
            case .newAdvert(let contact): .discovered(contact)
            case .telemetryResponse(let telemetry): .telemetry(telemetry)
            case .binaryResponse(let response): .binaryResponse(response)
            case .pathDiscovery(let discovery): .pathDiscovered(discovery)
            case .controlData(let data): .controlData(data)
            case .contactDeleted(let key): .contactRemoved(key)
            case .contactsFull: .contactsFull
            case .unknown(let code, let bytes): .unknown(code: code, bytes: bytes)
            }
    }
}
