// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// Advertising data, structure by structure (Core Specification Supplement, Part A §1; Assigned Numbers §2.3).
extension PacketDescription {
    private static let structureNames: [UInt8: String] = [
        0x01: "flags", 0x02: "incomplete_16_bit_services", 0x03: "complete_16_bit_services",
        0x04: "incomplete_32_bit_services", 0x05: "complete_32_bit_services", 0x06: "incomplete_128_bit_services",
        0x07: "complete_128_bit_services", 0x08: "shortened_local_name", 0x09: "complete_local_name",
        0x0A: "tx_power_dbm", 0x12: "peripheral_connection_interval_range", 0x14: "solicited_16_bit_services",
        0x15: "solicited_128_bit_services", 0x16: "service_data_16_bit", 0x19: "appearance",
        0x1A: "advertising_interval",
        0x21: "service_data_128_bit", 0x24: "uri", 0xFF: "manufacturer_data",
    ]

    /// Never fails: what is cut is shown as it is.
    static func advertisingData(_ bytes: [UInt8]) -> Value {
        var structures: [Value] = []
        var rest = bytes[...]
        while let length = rest.first {
            // Zeros fill up what is left (Vol 3 Part C §11).
            if rest.allSatisfy({ $0 == 0 }) { break }
            let content = rest.dropFirst().prefix(Int(length))
            guard length > 0, content.count == Int(length), let type = content.first else {
                structures.append(.group([Field("malformed", .bytes(Array(rest)))]))
                break
            }
            let name = structureNames[type] ?? "type_\(hex([type]))"
            structures.append(.group([Field(name, structure(type, Array(content.dropFirst())))]))
            rest = rest.dropFirst(1 + Int(length))
        }
        return .list(structures)
    }

    private static func structure(_ type: UInt8, _ content: [UInt8]) -> Value {
        switch type {
        case 0x01: .text(hex(UInt64(content.first ?? 0), byteCount: 1))
        case 0x02, 0x03, 0x14: uuids(content, byteCount: 2)
        case 0x06, 0x07, 0x15: uuids(content, byteCount: 16)
        case 0x08, 0x09, 0x24: .text(content.withUnsafeBytes { WireText.decode($0) })
        case 0x0A where content.count == 1: .number(Int64(Int8(bitPattern: content[0])))
        default: .bytes(content)
        }
    }

    private static func uuids(_ content: [UInt8], byteCount: Int) -> Value {
        guard content.count % byteCount == 0 else { return .bytes(content) }
        return .list(
            stride(from: 0, to: content.count, by: byteCount).map { start in
                let uuid = BluetoothUUID(attributeBytes: Array(content[start..<start + byteCount]))
                return .text(uuid?.shortText ?? "")
            })
    }
}
