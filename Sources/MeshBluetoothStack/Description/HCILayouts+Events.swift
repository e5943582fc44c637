// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension HCILayouts {
    struct Event: Sendable {
        var name: String
        var parameters: [FieldLayout]

        init(_ name: String, _ parameters: [FieldLayout]) {
            self.name = name
            self.parameters = parameters
        }
    }

    /// What a link runs with.
    private static let current: [FieldLayout] = [
        .interval("connection_interval_ms"), .number("peripheral_latency", 2),
        .centiseconds("supervision_timeout_ms"),
    ]
    private static let connected: [FieldLayout] = [
        .status, .handle, .choice("role", ["central", "peripheral"]), .addressKind("peer_address_type"),
        .address("peer_address"),
    ]
    private static let privateAddresses: [FieldLayout] = [
        .address("local_resolvable_private_address"), .address("peer_resolvable_private_address"),
    ]
    private static let clockAccuracy = FieldLayout.choice(
        "central_clock_accuracy",
        ["500-ppm", "250-ppm", "150-ppm", "100-ppm", "75-ppm", "50-ppm", "30-ppm", "20-ppm"])
    private static let encrypted = FieldLayout.choice("encryption_enabled", ["off", "on", "on-aes-ccm"])
    private static let legacyKind = FieldLayout.choice(
        "event_type", ["ADV_IND", "ADV_DIRECT_IND", "ADV_SCAN_IND", "ADV_NONCONN_IND", "SCAN_RSP"])

    /// By code (§7.7).
    static let events: [UInt8: Event] = [
        0x05: Event("Disconnection Complete", [.status, .handle, .reason]),
        0x08: Event("Encryption Change [v1]", [.status, .handle, encrypted]),
        0x0C: Event(
            "Read Remote Version Information Complete",
            [.status, .handle, .number("version"), .hex("company_identifier", 2), .hex("subversion", 2)]),
        0x0E: Event("Command Complete", [.number("num_hci_command_packets")]),
        0x0F: Event("Command Status", [.status, .number("num_hci_command_packets")]),
        0x10: Event("Hardware Error", [.hex("hardware_code")]),
        0x13: Event(
            "Number Of Completed Packets",
            [FieldLayout("handles", .array([.handle, .number("num_completed_packets", 2)]))]),
        0x1A: Event("Data Buffer Overflow", [.number("link_type")]),
        0x30: Event("Encryption Key Refresh Complete", [.status, .handle]),
        0x59: Event("Encryption Change [v2]", [.status, .handle, encrypted, .number("encryption_key_size")]),
        0xFF: Event("Vendor Specific", [FieldLayout("parameters", .rest)]),
    ]

    /// By subevent code (§7.7.65).
    static let leEvents: [UInt8: Event] = [
        0x01: Event("LE Connection Complete", connected + current + [clockAccuracy]),
        0x02: Event(
            "LE Advertising Report",
            [
                FieldLayout(
                    "reports",
                    .array([
                        legacyKind, .addressKind("address_type"), .address("address"),
                        FieldLayout("data", .advertising(padding: 0)), .signed("rssi_dbm"),
                    ]))
            ]),
        0x03: Event("LE Connection Update Complete", [.status, .handle] + current),
        0x04: Event("LE Read Remote Features Complete", [.status, .handle, .hex("le_features", 8)]),
        0x05: Event("LE Long Term Key Request", [.handle, .hex("random_number", 8), .hex("encrypted_diversifier", 2)]),
        0x06: Event(
            "LE Remote Connection Parameter Request",
            [
                .handle, .interval("interval_min_ms"), .interval("interval_max_ms"), .number("max_latency", 2),
                .centiseconds("timeout_ms"),
            ]),
        0x07: Event(
            "LE Data Length Change",
            [
                .handle, .number("max_tx_octets", 2), .number("max_tx_time_us", 2), .number("max_rx_octets", 2),
                .number("max_rx_time_us", 2),
            ]),
        0x0A: Event("LE Enhanced Connection Complete [v1]", connected + privateAddresses + current + [clockAccuracy]),
        0x0B: Event(
            "LE Directed Advertising Report",
            [
                FieldLayout(
                    "reports",
                    .array([
                        legacyKind, .addressKind("address_type"), .address("address"),
                        .addressKind("direct_address_type"), .address("direct_address"), .signed("rssi_dbm"),
                    ]))
            ]),
        0x0C: Event("LE PHY Update Complete", [.status, .handle, .phy("tx_phy"), .phy("rx_phy")]),
        0x0D: Event(
            "LE Extended Advertising Report",
            [
                FieldLayout(
                    "reports",
                    .array([
                        .hex("event_type", 2), .addressKind("address_type"), .address("address"),
                        .phy("primary_phy"), .phy("secondary_phy"), .number("advertising_sid"),
                        .signed("tx_power_dbm"), .signed("rssi_dbm"), .interval("periodic_advertising_interval_ms"),
                        .addressKind("direct_address_type"), .address("direct_address"),
                        FieldLayout("data", .advertising(padding: 0)),
                    ]))
            ]),
        0x11: Event("LE Scan Timeout", []),
        0x12: Event(
            "LE Advertising Set Terminated",
            [
                .status, .number("advertising_handle"), .handle,
                .number("num_completed_extended_advertising_events"),
            ]),
        0x14: Event("LE Channel Selection Algorithm", [.handle, .number("channel_selection_algorithm")]),
        0x29: Event(
            "LE Enhanced Connection Complete [v2]",
            connected + privateAddresses + current + [
                clockAccuracy, .number("advertising_handle"), .hex("sync_handle", 2),
            ]),
    ]
}

extension HCIStatus {
    /// Its name in the specification (Vol 1 Part F §1.3), or its number.
    public var specificationName: String {
        Self.names[rawValue] ?? description
    }

    private static let names: [UInt8: String] = [
        0x00: "Success", 0x01: "Unknown HCI Command", 0x02: "Unknown Connection Identifier", 0x03: "Hardware Failure",
        0x04: "Page Timeout", 0x05: "Authentication Failure", 0x06: "PIN or Key Missing",
        0x07: "Memory Capacity Exceeded", 0x08: "Connection Timeout", 0x09: "Connection Limit Exceeded",
        0x0B: "Connection Already Exists", 0x0C: "Command Disallowed",
        0x0D: "Connection Rejected due to Limited Resources", 0x0E: "Connection Rejected Due To Security Reasons",
        0x0F: "Connection Rejected due to Unacceptable BD_ADDR", 0x10: "Connection Accept Timeout Exceeded",
        0x11: "Unsupported Feature or Parameter Value", 0x12: "Invalid HCI Command Parameters",
        0x13: "Remote User Terminated Connection",
        0x14: "Remote Device Terminated Connection due to Low Resources",
        0x15: "Remote Device Terminated Connection due to Power Off", 0x16: "Connection Terminated By Local Host",
        0x17: "Repeated Attempts", 0x18: "Pairing Not Allowed", 0x1A: "Unsupported Remote Feature",
        0x1E: "Invalid LMP Parameters / Invalid LL Parameters", 0x1F: "Unspecified Error",
        0x20: "Unsupported LMP Parameter Value / Unsupported LL Parameter Value",
        0x22: "LMP Response Timeout / LL Response Timeout",
        0x23: "LMP Error Transaction Collision / LL Procedure Collision", 0x25: "Encryption Mode Not Acceptable",
        0x28: "Instant Passed", 0x2A: "Different Transaction Collision", 0x2F: "Insufficient Security",
        0x30: "Parameter Out Of Mandatory Range", 0x3A: "Controller Busy",
        0x3B: "Unacceptable Connection Parameters", 0x3C: "Advertising Timeout",
        0x3D: "Connection Terminated due to MIC Failure",
        0x3E: "Connection Failed to be Established / Synchronization Timeout", 0x42: "Unknown Advertising Identifier",
        0x43: "Limit Reached", 0x44: "Operation Cancelled by Host", 0x45: "Packet Too Long",
    ]
}
