// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop

/// What is known of boards by the USB identity of their port.
///
/// A board whose port is a USB function of its own processor sends only to a host that has set DTR. One behind a bridge chip
/// has its reset and boot pins wired to DTR and RTS, by two transistors that do something when the two lines differ (Espressif,
/// esptool, "Boot Mode Selection": both on or both off is neutral). Linux sets both at every open, so both on is the state that
/// moves nothing.
struct SerialBoard: Sendable, Hashable {
    /// For people.
    var name: String
    /// How the lines should be, and how they are tried when that gets no answer.
    var candidates: [SerialControl]

    private static let on = SerialControl(dtr: true, rts: true)
    private static let off = SerialControl(dtr: false, rts: false)

    /// The reports behind the rows: companion-protocol §1.1 and reconnection §4.4, 31, which name meshcore_py 104 and 105,
    /// meshcore.js 27 and 38, OffbandMesh 661 and 1036. Vendor numbers are those of usb.ids.
    private static let known: [(vendor: UInt16, product: UInt16?, board: SerialBoard)] = [
        // nRF52840 with TinyUSB's CDC, such as RAK4631 and T-Echo: answers only with DTR on.
        (0x239A, nil, SerialBoard(name: "nRF52840 with its own USB port", candidates: [on, off])),
        // Seeed's nRF52840 boards, such as XIAO and T1000-E: the same firmware core.
        (0x2886, nil, SerialBoard(name: "nRF52840 with its own USB port", candidates: [on, off])),
        // ESP32-S3 and C3 with USB-Serial-JTAG: restarts on a falling edge of the lines, so they stay as Linux sets them.
        (0x303A, 0x1001, SerialBoard(name: "ESP32 with USB-Serial-JTAG", candidates: [on, off])),
        // ESP32-S2 and S3 with TinyUSB's CDC: as the nRF52840.
        (0x303A, nil, SerialBoard(name: "ESP32 with its own USB port", candidates: [on, off])),
        // RP2040 with TinyUSB's CDC: as the nRF52840.
        (0x2E8A, nil, SerialBoard(name: "RP2040 with its own USB port", candidates: [on, off])),
        // CP2102: a Heltec V2 answers only with both off.
        (0x10C4, nil, SerialBoard(name: "board with a CP210x bridge", candidates: [off, on])),
        // CH340, CH9102, CH343: the same wiring.
        (0x1A86, nil, SerialBoard(name: "board with a CH34x or CH9102 bridge", candidates: [off, on])),
    ]

    /// A board that no row is about, or a port that is not on USB.
    private static let unknown = SerialBoard(name: "unknown board", candidates: [on, off])

    /// The most particular row for an identity.
    static func behind(_ usb: USBIdentity?) -> SerialBoard {
        guard let usb else { return unknown }
        let rows = known.filter { $0.vendor == usb.vendor && ($0.product ?? usb.product) == usb.product }
        return (rows.first { $0.product != nil } ?? rows.first)?.board ?? unknown
    }
}
