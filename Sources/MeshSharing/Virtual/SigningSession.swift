// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

/// One client's signature in the making. The radio has one buffer for what is to be signed, so each client has its own
/// here, and the radio gets all of it at once when the client has said it all.
///
///     client ─ SIGN_START ─▶ 13        kept here, as the radio would answer
///     client ─ SIGN_DATA ──▶ 00  … ×n
///     client ─ SIGN_FINISH ──────────▶ SIGN_START, SIGN_DATA …, SIGN_FINISH ─▶ radio ─ 14 ─▶ client
struct SigningSession: Sendable {
    enum Action: Sendable, Equatable {
        /// Answer the client with this.
        case reply(Data)
        /// Send these to the radio one after the other, nothing between them, each when the one before was accepted.
        /// The last one's reply is the client's.
        case transaction([Data])
    }

    /// How many bytes may be signed (`MAX_SIGN_DATA_LEN`, firmware MyMesh.cpp).
    static let capacity = 8 * 1024

    /// Nil before SIGN_START.
    private var buffer: Data?

    /// Whether there is something to be signed, be it nothing at all.
    var hasBegun: Bool { buffer != nil }

    /// A client's SIGN_START, SIGN_DATA or SIGN_FINISH; nil for other commands. The radio's link carries frames of at
    /// most `maximumFrame` bytes. Errors are the firmware's: 4 without a start, 3 for more than ``capacity``, which
    /// leaves what was there before.
    mutating func received(_ command: Data, maximumFrame: Int) -> Action? {
        switch command.first.flatMap(CommandCode.init) {
        case .signStart:
            buffer = Data()
            return .reply(Data([ReplyCode.signStart.rawValue, 0]) + Data.field32(UInt32(Self.capacity)))
        case .signData:
            guard let buffer else { return .reply(CompanionFrame.error(.badState)) }
            let part = command.dropFirst()
            guard buffer.count + part.count <= Self.capacity else { return .reply(CompanionFrame.error(.tableFull)) }
            self.buffer?.append(part)
            return .reply(CompanionFrame.reply(.ok))
        case .signFinish:
            guard let buffer else { return .reply(CompanionFrame.error(.badState)) }
            self.buffer = nil
            return .transaction(Self.transaction(buffer, maximumFrame: maximumFrame))
        default:
            return nil
        }
    }

    private static func transaction(_ buffer: Data, maximumFrame: Int) -> [Data] {
        // A link that carries less than a byte of data does not come up; this must end all the same.
        let size = max(maximumFrame - 1, 1)
        let parts = stride(from: 0, to: buffer.count, by: size).map { start in
            Data([CommandCode.signData.rawValue]) + buffer.dropFirst(start).prefix(size)
        }
        return [Data([CommandCode.signStart.rawValue])] + parts + [Data([CommandCode.signFinish.rawValue])]
    }
}
