// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

/// What makes two frames the same message: the one that the radio hands out twice, or in another version's layout.
///
/// A sender that gets no acknowledgement sends a text again, with another attempt number: the radio takes it for
/// another packet, the reader must not. So the key is sender or channel, the sender's clock, the kind of text, and the
/// text; not how well and by which way it came. A datagram of a channel has no time: its channel, type and bytes are
/// the key. That loses nothing, since the radio itself takes a second packet of the same bytes for a repetition.
struct MessageKey: Sendable, Hashable {
    /// As much text as each layout carries from any firmware: a frame was 172 bytes before MeshCore#2022, and a signed
    /// text begins at byte 20 of the longest layout. What is beyond may be cut off in one layout and there in another.
    static let comparedText = 152

    private let bytes: Data

    /// The key of a frame that SYNC_NEXT_MESSAGE brought. One that is too short for its layout is its own key.
    init(_ frame: Data) {
        bytes = Self.message(frame) ?? Self.channelData(frame) ?? Data(frame)
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
