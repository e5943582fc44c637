// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The framing that MeshCore companion radios speak over serial, TCP and Ethernet: a marker, the payload's length as
/// u16 little-endian, the payload (companion-protocol §1.1).
public enum CompanionFraming {
    /// The first byte of a frame; it tells the direction.
    public enum Marker: UInt8, Sendable, Hashable {
        /// `>`: radio to app.
        case fromRadio = 0x3E
        /// `<`: app to radio.
        case fromClient = 0x3C
    }

    /// Marker and length, in bytes.
    public static let headerLength = 3
    /// The largest payload of the firmware, in bytes (`MAX_FRAME_SIZE`, firmware src/helpers/BaseSerialInterface.h).
    public static let maximumPayload = 176
    /// The largest payload a ceiling may be set to, in bytes: what the length field can say.
    public static let largestCeiling = 65_535
}
