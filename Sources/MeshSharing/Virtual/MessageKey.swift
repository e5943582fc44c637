// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

/// What makes two frames the same message: the one that the radio hands out twice, or in another version's layout.
///
/// A sender that gets no acknowledgement sends a text again, with another attempt number: the radio takes it for
/// another packet, the reader must not. So the key is sender or channel, the sender's clock, the kind of text, and the
/// text; not how well and by which way it came.
///
/// A datagram of a channel (1B) has no time: its channel, type and bytes are the key, and two with the same may be two, as
/// from a sensor that tells twice that the door is open. The radio drops a packet that it has heard already, but remembers
/// no more than the last 128 (`SimpleMeshTables`), minutes on a busy mesh: what it gives out after that it may have got
/// twice over the air, or taken for another one rightly. Copies of one datagram come close together: by several ways
/// through the mesh within seconds, for several interfaces of the radio within the time of a time-out and its fence. So for
/// these the same key means the same message for a minute only.
struct MessageKey: Sendable, Hashable {
    /// As much text as each layout carries from any firmware: a frame was 172 bytes before MeshCore#2022, and a signed
    /// text begins at byte 20 of the longest layout. What is beyond may be cut off in one layout and there in another.
    static let comparedText = 152

    /// How long the same key means the same datagram of a channel.
    static let datagramWindow = Duration.seconds(60)

    /// What the journal compares.
    let bytes: Data
    /// How long this key means the same message; nil: as long as the journal says.
    let window: Duration?

    /// The key of a frame that SYNC_NEXT_MESSAGE brought. One that is too short for its layout is its own key.
    init(_ frame: Data) {
        bytes = Self.message(frame) ?? Self.channelData(frame) ?? Data(frame)
        window = frame.first == ReplyCode.channelData.rawValue ? Self.datagramWindow : nil
    }

    private static func message(_ frame: Data) -> Data? {
        guard let code = frame.first.flatMap(ReplyCode.init), let layout = MessageView.layout(of: code) else {
            return nil
        }
        let body = frame.dropFirst(layout.hasSignal ? 4 : 1)
        // Sender or channel; then the way, the kind of text, the time, the text.
        let source = body.prefix(layout.isContact ? KeyPrefix.length : 1)
        let rest = body.dropFirst(source.count)
        guard rest.count >= 6 else { return nil }
        let kind: ReplyCode = layout.isContact ? .contactMessage : .channelMessage
        return Data([kind.rawValue]) + source + rest.dropFirst().prefix(5 + comparedText)
    }

    private static func channelData(_ frame: Data) -> Data? {
        // Signal, two bytes that are reserved, channel, way, type, length, data.
        guard frame.first == ReplyCode.channelData.rawValue, frame.count >= 9, let length = frame.field8(at: 8)
        else { return nil }
        return Data([ReplyCode.channelData.rawValue]) + frame.dropFirst(4).prefix(1) + frame.dropFirst(6).prefix(2)
            + frame.dropFirst(9).prefix(Int(length))
    }
}
