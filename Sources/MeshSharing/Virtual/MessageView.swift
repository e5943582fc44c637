// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshWire

/// A message as a client of some protocol version gets it.
///
/// Version 3 brought layouts with signal strength: codes 10 and 11 (hexadecimal) in the place of 07 and 08, with three
/// more bytes after the code. What follows is the same, and is passed on byte for byte: a text need not be UTF-8.
enum MessageView {
    /// What version 3 put between the code and the rest: the signal-to-noise ratio and two reserved bytes.
    private static let signalLength = 3

    /// The first version with signal strength, and with datagrams of channels.
    static let signalVersion: UInt8 = 3

    /// How a message is laid out.
    struct Layout: Equatable {
        /// From a contact; else from a channel.
        var isContact: Bool
        /// With signal strength.
        var hasSignal: Bool

        var code: ReplyCode {
            switch (isContact, hasSignal) {
            case (true, false): .contactMessage
            case (true, true): .contactMessageV3
            case (false, false): .channelMessage
            case (false, true): .channelMessageV3
            }
        }
    }

    /// The layout with this code; nil if it is none of a text.
    static func layout(of code: ReplyCode) -> Layout? {
        switch code {
        case .contactMessage: Layout(isContact: true, hasSignal: false)
        case .contactMessageV3: Layout(isContact: true, hasSignal: true)
        case .channelMessage: Layout(isContact: false, hasSignal: false)
        case .channelMessageV3: Layout(isContact: false, hasSignal: true)
        default: nil
        }
    }

    /// Whether a frame is a message, as SYNC_NEXT_MESSAGE brings it.
    static func isMessage(_ frame: Data) -> Bool {
        guard let code = frame.first.flatMap(ReplyCode.init) else { return false }
        return code == .channelData || layout(of: code) != nil
    }

    /// The frame for a client that told `version` in DEVICE_QUERY, 0 if it told none; nil if that version has no frame
    /// for it: a datagram of a channel (1B) before version 3. A message whose strength is not known tells 0 dB; the
    /// longest signed texts lose their last bytes by that, as they do in the firmware. Other frames are as they are.
    static func frame(_ frame: Data, forVersion version: UInt8) -> Data? {
        guard let code = frame.first.flatMap(ReplyCode.init) else { return frame }
        let wantsSignal = version >= signalVersion
        if code == .channelData { return wantsSignal ? frame : nil }
        guard var layout = layout(of: code), layout.hasSignal != wantsSignal else { return frame }
        // Too short to be a message: not for this to mend.
        if layout.hasSignal, frame.count <= signalLength { return frame }
        let rest = frame.dropFirst(layout.hasSignal ? 1 + signalLength : 1)
        layout.hasSignal = wantsSignal
        let head = Data([layout.code.rawValue]) + Data(count: wantsSignal ? signalLength : 0)
        return head + rest.prefix(CompanionFraming.maximumPayload - head.count)
    }
}
