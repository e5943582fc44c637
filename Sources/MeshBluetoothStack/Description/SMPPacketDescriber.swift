// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// Security Manager packets, described (Core Specification 5.4, Vol 3 Part H §3.3 to §3.6).
public enum SMPPacketDescriber {
    /// Never fails; see ``PacketDescription``.
    public static func describe(_ packet: [UInt8]) -> PacketDescription {
        PacketDescription(.smp, "empty", of: packet) { (reader, description) throws(DecodeError) in
            try read(&reader, into: &description)
        }
    }

    static func read(_ reader: inout ByteReader, into description: inout PacketDescription) throws(DecodeError) {
        let code = try reader.read(UInt8.self)
        guard let (name, layout) = layouts[code] else {
            description.name = "unknown"
            description.fields = [
                .init("code", .text(PacketDescription.hex(UInt64(code), byteCount: 1))),
                .init("data", .bytes(reader.readRest())),
            ]
            return
        }
        description.name = name
        try description.read(layout, &reader)
        try reader.expectEnd()
    }

    private static let requirements = FieldLayout.bits(
        "authreq", ["bonding", "bonding-reserved", "mitm", "sc", "keypress", "ct2"])

    private static let features: [FieldLayout] = [
        .choice(
            "io_capability", ["DisplayOnly", "DisplayYesNo", "KeyboardOnly", "NoInputNoOutput", "KeyboardDisplay"]),
        .flag("oob_data_flag"), requirements, .number("maximum_encryption_key_size"),
        .bits("initiator_key_distribution", keys), .bits("responder_key_distribution", keys),
    ]

    private static let keys = ["EncKey", "IdKey", "SignKey", "LinkKey"]

    private static let reasons: [UInt8: String] = [
        0x01: "Passkey Entry Failed", 0x02: "OOB Not Available", 0x03: "Authentication Requirements",
        0x04: "Confirm Value Failed", 0x05: "Pairing Not Supported", 0x06: "Encryption Key Size",
        0x07: "Command Not Supported", 0x08: "Unspecified Reason", 0x09: "Repeated Attempts",
        0x0A: "Invalid Parameters", 0x0B: "DHKey Check Failed", 0x0C: "Numeric Comparison Failed",
        0x0D: "BR/EDR Pairing in Progress", 0x0E: "Cross-transport Key Derivation/Generation Not Allowed",
        0x0F: "Key Rejected", 0x10: "Busy",
    ]

    private static let layouts: [UInt8: (name: String, [FieldLayout])] = [
        0x01: ("Pairing Request", features),
        0x02: ("Pairing Response", features),
        // Of use only while the pairing lasts; without them a pairing that fails cannot be looked into.
        0x03: ("Pairing Confirm", [FieldLayout("confirm_value", .bytes(16))]),
        0x04: ("Pairing Random", [FieldLayout("random_value", .bytes(16))]),
        0x05: ("Pairing Failed", [FieldLayout("reason", .choice(reasons))]),
        0x06: ("Encryption Information", [.key("long_term_key")]),
        0x07: ("Central Identification", [.hex("ediv", 2), .hex("rand", 8)]),
        0x08: ("Identity Information", [.key("identity_resolving_key")]),
        0x09: ("Identity Address Information", [.choice("addrtype", ["public", "random"]), .address("bd_addr")]),
        0x0A: ("Signing Information", [.key("signature_key")]),
        0x0B: ("Security Request", [requirements]),
        0x0C: (
            "Pairing Public Key",
            [FieldLayout("public_key_x", .bytes(32)), FieldLayout("public_key_y", .bytes(32))]
        ),
        0x0D: ("Pairing DHKey Check", [FieldLayout("dhkey_check", .bytes(16))]),
        0x0E: (
            "Pairing Keypress Notification",
            [
                .choice(
                    "notification_type",
                    [
                        "Passkey entry started", "Passkey digit entered", "Passkey digit erased", "Passkey cleared",
                        "Passkey entry completed",
                    ])
            ]
        ),
    ]
}
