// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The layouts of HCI's commands and events (Core Specification 5.4, Vol 4 Part E §7). Parameters that come as several arrays
/// are sent interleaved (§5.2).
enum HCILayouts {
    struct Command: Sendable {
        var name: String
        var parameters: [FieldLayout]
        /// What Command Complete says behind the status.
        var result: [FieldLayout]

        init(_ name: String, _ parameters: [FieldLayout] = [], result: [FieldLayout] = []) {
            self.name = name
            self.parameters = parameters
            self.result = result
        }
    }

    // MARK: Parts that several have

    private static let ownAddressKind = FieldLayout.choice(
        "own_address_type", ["public", "random", "resolvable-or-public", "resolvable-or-random"])
    private static let scanKind = FieldLayout.choice("scan_type", ["passive", "active"])
    private static let filterPolicy = FieldLayout.number("scanning_filter_policy")
    private static let peer: [FieldLayout] = [.addressKind("peer_address_type"), .address("peer_address")]
    private static let identity: [FieldLayout] = [
        .addressKind("peer_identity_address_type"), .address("peer_identity_address"),
    ]
    private static let wanted: [FieldLayout] = [
        .interval("connection_interval_min_ms"), .interval("connection_interval_max_ms"), .number("max_latency", 2),
        .centiseconds("supervision_timeout_ms"),
    ]
    private static let eventLengths: [FieldLayout] = [.slots("min_ce_length_ms"), .slots("max_ce_length_ms")]
    private static let dataLength: [FieldLayout] = [.number("tx_octets", 2), .number("tx_time_us", 2)]
    private static let suggested: [FieldLayout] = [
        .number("suggested_max_tx_octets", 2), .number("suggested_max_tx_time_us", 2),
    ]
    private static let listed: [FieldLayout] = [.addressKind("address_type"), .address("address")]
    private static let advertisingHandle = FieldLayout.number("advertising_handle")
    private static let extendedData: [FieldLayout] = [
        advertisingHandle,
        .choice("operation", ["intermediate", "first", "last", "complete", "unchanged"]),
        .number("fragment_preference"),
    ]

    private static func data(_ name: String, padding: Int = 0) -> FieldLayout {
        FieldLayout(name, .advertising(padding: padding))
    }

    // MARK: Commands

    static let commands: [UInt16: Command] = general.merging(le) { old, _ in old }

    private static let general: [UInt16: Command] = [
        0x0406: Command("Disconnect", [.handle, .reason]),
        0x041D: Command("Read Remote Version Information", [.handle]),
        0x0C01: Command("Set Event Mask", [.hex("event_mask", 8)]),
        0x0C03: Command("Reset"),
        0x0C63: Command("Set Event Mask Page 2", [.hex("event_mask_page_2", 8)]),
        0x0C6D: Command("Write LE Host Support", [.flag("le_supported_host"), .number("simultaneous_le_host")]),
        0x1001: Command(
            "Read Local Version Information",
            result: [
                .number("hci_version"), .hex("hci_subversion", 2), .number("lmp_version"),
                .hex("company_identifier", 2), .hex("lmp_subversion", 2),
            ]),
        0x1002: Command(
            "Read Local Supported Commands", result: [FieldLayout("supported_commands", .bytes(64))]),
        0x1003: Command("Read Local Supported Features", result: [.hex("lmp_features", 8)]),
        0x1005: Command(
            "Read Buffer Size",
            result: [
                .number("acl_data_packet_length", 2), .number("synchronous_data_packet_length"),
                .number("total_num_acl_data_packets", 2), .number("total_num_synchronous_data_packets", 2),
            ]),
        0x1009: Command("Read BD_ADDR", result: [.address("bd_addr")]),
        0x1405: Command("Read RSSI", [.handle], result: [.handle, .signed("rssi_dbm")]),
    ]

    private static let le: [UInt16: Command] = [
        0x2001: Command("LE Set Event Mask", [.hex("le_event_mask", 8)]),
        0x2002: Command(
            "LE Read Buffer Size [v1]",
            result: [.number("le_acl_data_packet_length", 2), .number("total_num_le_acl_data_packets")]),
        0x2003: Command("LE Read Local Supported Features", result: [.hex("le_features", 8)]),
        0x2005: Command("LE Set Random Address", [.address("random_address")]),
        0x2006: Command(
            "LE Set Advertising Parameters",
            [
                .slots("advertising_interval_min_ms"), .slots("advertising_interval_max_ms"),
                .choice(
                    "advertising_type",
                    ["ADV_IND", "ADV_DIRECT_IND_HIGH", "ADV_SCAN_IND", "ADV_NONCONN_IND", "ADV_DIRECT_IND_LOW"]),
                ownAddressKind,
            ] + peer + [.hex("advertising_channel_map"), .number("advertising_filter_policy")]),
        0x2007: Command("LE Read Advertising Physical Channel Tx Power", result: [.signed("tx_power_level_dbm")]),
        0x2008: Command("LE Set Advertising Data", [data("advertising_data", padding: 31)]),
        0x2009: Command("LE Set Scan Response Data", [data("scan_response_data", padding: 31)]),
        0x200A: Command("LE Set Advertising Enable", [.flag("advertising_enable")]),
        0x200B: Command(
            "LE Set Scan Parameters",
            [
                .choice("le_scan_type", ["passive", "active"]), .slots("le_scan_interval_ms"),
                .slots("le_scan_window_ms"), ownAddressKind, filterPolicy,
            ]),
        0x200C: Command("LE Set Scan Enable", [.flag("le_scan_enable"), .flag("filter_duplicates")]),
        0x200D: Command(
            "LE Create Connection",
            [.slots("le_scan_interval_ms"), .slots("le_scan_window_ms"), .number("initiator_filter_policy")] + peer
                + [ownAddressKind] + wanted + eventLengths),
        0x200E: Command("LE Create Connection Cancel"),
        0x200F: Command("LE Read Filter Accept List Size", result: [.number("filter_accept_list_size")]),
        0x2010: Command("LE Clear Filter Accept List"),
        0x2011: Command("LE Add Device To Filter Accept List", listed),
        0x2012: Command("LE Remove Device From Filter Accept List", listed),
        0x2013: Command("LE Connection Update", [.handle] + wanted + eventLengths),
        0x2016: Command("LE Read Remote Features", [.handle]),
        0x2018: Command("LE Rand", result: [.hex("random_number", 8)]),
        0x2019: Command(
            "LE Enable Encryption",
            [.handle, .hex("random_number", 8), .hex("encrypted_diversifier", 2), .key("long_term_key")]),
        0x201A: Command("LE Long Term Key Request Reply", [.handle, .key("long_term_key")], result: [.handle]),
        0x201B: Command("LE Long Term Key Request Negative Reply", [.handle], result: [.handle]),
        0x201C: Command("LE Read Supported States", result: [.hex("le_states", 8)]),
        0x2020: Command(
            "LE Remote Connection Parameter Request Reply",
            [.handle, .interval("interval_min_ms"), .interval("interval_max_ms"), .number("max_latency", 2)]
                + [.centiseconds("timeout_ms")] + eventLengths, result: [.handle]),
        0x2021: Command(
            "LE Remote Connection Parameter Request Negative Reply", [.handle, .reason], result: [.handle]),
        0x2022: Command("LE Set Data Length", [.handle] + dataLength, result: [.handle]),
        0x2023: Command("LE Read Suggested Default Data Length", result: suggested),
        0x2024: Command("LE Write Suggested Default Data Length", suggested),
        0x2027: Command("LE Add Device To Resolving List", identity + [.key("peer_irk"), .key("local_irk")]),
        0x2028: Command("LE Remove Device From Resolving List", identity),
        0x2029: Command("LE Clear Resolving List"),
        0x202A: Command("LE Read Resolving List Size", result: [.number("resolving_list_size")]),
        0x202D: Command("LE Set Address Resolution Enable", [.flag("address_resolution_enable")]),
        0x202E: Command("LE Set Resolvable Private Address Timeout", [.number("rpa_timeout_s", 2)]),
        0x202F: Command(
            "LE Read Maximum Data Length",
            result: [
                .number("supported_max_tx_octets", 2), .number("supported_max_tx_time_us", 2),
                .number("supported_max_rx_octets", 2), .number("supported_max_rx_time_us", 2),
            ]),
        0x2030: Command("LE Read PHY", [.handle], result: [.handle, .phy("tx_phy"), .phy("rx_phy")]),
        0x2031: Command("LE Set Default PHY", [.bits("all_phys", noPreference), .phys("tx_phys"), .phys("rx_phys")]),
        0x2032: Command(
            "LE Set PHY",
            [.handle, .bits("all_phys", noPreference), .phys("tx_phys"), .phys("rx_phys"), .hex("phy_options", 2)]),
        0x2035: Command("LE Set Advertising Set Random Address", [advertisingHandle, .address("random_address")]),
        0x2036: Command(
            "LE Set Extended Advertising Parameters",
            [
                advertisingHandle, .hex("advertising_event_properties", 2),
                .slots("primary_advertising_interval_min_ms", 3), .slots("primary_advertising_interval_max_ms", 3),
                .hex("primary_advertising_channel_map"), ownAddressKind,
            ] + peer
                + [
                    .number("advertising_filter_policy"), .signed("advertising_tx_power_dbm"),
                    .phy("primary_advertising_phy"), .number("secondary_advertising_max_skip"),
                    .phy("secondary_advertising_phy"), .number("advertising_sid"),
                    .flag("scan_request_notification_enable"),
                ], result: [.signed("selected_tx_power_dbm")]),
        0x2037: Command("LE Set Extended Advertising Data", extendedData + [data("advertising_data")]),
        0x2038: Command("LE Set Extended Scan Response Data", extendedData + [data("scan_response_data")]),
        0x2039: Command(
            "LE Set Extended Advertising Enable",
            [
                .flag("enable"),
                FieldLayout(
                    "sets",
                    .array([
                        advertisingHandle, .centiseconds("duration_ms"), .number("max_extended_advertising_events"),
                    ])),
            ]),
        0x203C: Command("LE Remove Advertising Set", [advertisingHandle]),
        0x203D: Command("LE Clear Advertising Sets"),
        0x2041: Command(
            "LE Set Extended Scan Parameters",
            [
                ownAddressKind, filterPolicy, .phys("scanning_phys"),
                FieldLayout(
                    "phys", .perBit([scanKind, .slots("scan_interval_ms"), .slots("scan_window_ms")])),
            ]),
        0x2042: Command(
            "LE Set Extended Scan Enable",
            [
                .flag("enable"), .number("filter_duplicates"), .centiseconds("duration_ms"),
                FieldLayout("period_ms", .milliseconds(byteCount: 2, unit: 1_280_000)),
            ]),
        0x2043: Command(
            "LE Extended Create Connection [v1]",
            [.number("initiator_filter_policy"), ownAddressKind] + peer + [.phys("initiating_phys")]
                + [
                    FieldLayout(
                        "phys",
                        .perBit([.slots("scan_interval_ms"), .slots("scan_window_ms")] + wanted + eventLengths))
                ]),
        0x204E: Command("LE Set Privacy Mode", identity + [.choice("privacy_mode", ["network", "device"])]),
        0x2060: Command(
            "LE Read Buffer Size [v2]",
            result: [
                .number("le_acl_data_packet_length", 2), .number("total_num_le_acl_data_packets"),
                .number("iso_data_packet_length", 2), .number("total_num_iso_data_packets"),
            ]),
    ]

    private static let noPreference = ["no-tx-preference", "no-rx-preference"]
}
