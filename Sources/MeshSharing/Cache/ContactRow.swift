// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

/// A contact as the radio sends it: a CONTACT frame and the two numbers of it that decide (companion-protocol §1.6).
struct ContactRow: Sendable, Equatable {
    /// The fewest bytes, code included.
    static let length = 148
    private static let pathByteOffset = 35
    private static let nameOffset = 100
    private static let nameLength = 32
    private static let lastModifiedOffset = 144

    let key: PublicKey
    /// When it changed, by the radio's clock, seconds since 1970.
    let lastModified: UInt32
    private(set) var frame: Data

    /// Nil if the frame is no CONTACT or too short.
    init?(_ frame: Data) {
        guard frame.first == ReplyCode.contact.rawValue, frame.count >= Self.length,
            let key = PublicKey(frame.dropFirst().prefix(PublicKey.length)),
            let lastModified = frame.field32(at: Self.lastModifiedOffset)
        else { return nil }
        self.key = key
        self.lastModified = lastModified
        // A slice would keep the whole of what it was cut from.
        self.frame = Data(frame)
    }

    /// The row that an ADD_UPDATE_CONTACT makes, if that tells all of it: the command has the row's layout. Without its
    /// last field the radio puts its own time there (firmware `MyMesh::updateContactFromFrame`).
    init?(written command: Data) {
        guard command.count >= Self.length else { return nil }
        var frame = Data([ReplyCode.contact.rawValue]) + command.dropFirst().prefix(Self.length - 1)
        // The radio sends a name of at most 31 bytes and zeros after it (`writeContactRespFrame`, `strzcpy`).
        let field = Self.nameOffset..<Self.nameOffset + Self.nameLength
        let name = frame[field].prefix { $0 != 0 }.prefix(Self.nameLength - 1)
        frame.replaceSubrange(field, with: name + Data(count: Self.nameLength - name.count))
        self.init(frame)
    }

    /// What RESET_PATH does: the way becomes unknown, and nothing else changes, not even the time
    /// (`MyMesh::handleCmdFrame`, "lastmod = ??").
    mutating func resetPath() {
        frame[frame.startIndex + Self.pathByteOffset] = PathByte.none.rawValue
    }
}
