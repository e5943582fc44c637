// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshBluetoothStack
internal import MeshRuntime
internal import MeshTransportAPI

/// What `meshhost decode hci`, `att` and `smp` make of bytes, and `decode btsnoop` of a recording.
struct BluetoothDecoding {
    /// Whether keys are shown.
    let showsSecrets: Bool

    /// Packets from hexadecimal digits; whatever they are, at least one.
    func packets(_ subject: HostCommand.BluetoothSubject, _ hex: String) throws(UsageError) -> [JSONValue] {
        let bytes = [UInt8](try Decoding.bytes(of: hex))
        let packets =
            switch subject {
            case .hci: HCIPacketDescriber.describe(h4: bytes)
            case .att: [ATTPacketDescriber.describe(bytes)]
            case .smp: [SMPPacketDescriber.describe(bytes)]
            }
        return packets.map { $0.json(showsSecrets: showsSecrets) }
    }

    /// A packet of a recording in one line for people.
    func line(_ record: BTSnoopFile.Record, _ packet: PacketDescription) -> String {
        let sender = record.isFromController ? "controller" : "host      "
        return "\(record.timeText) \(sender) \(packet.line(showsSecrets: showsSecrets))"
    }

    /// The same as JSON.
    func json(_ record: BTSnoopFile.Record, _ packet: PacketDescription) -> JSONValue {
        [
            "time": .string(record.timeText), "time_us": .int(record.time),
            "from": .string(record.isFromController ? "controller" : "host"),
            "packet": packet.json(showsSecrets: showsSecrets),
        ]
    }
}

extension BTSnoopFile.Record {
    fileprivate var timeText: String { RFC3339.text(sinceEpoch: .microseconds(time)) }
}

extension PacketDescription {
    /// The fields beside `layer` and `name`, what is inside as `payload`, and what is wrong as `error`.
    func json(showsSecrets: Bool) -> JSONValue {
        var object = Value.object(fields, showsSecrets)
        object["layer"] = .string(layer.rawValue)
        object["name"] = .string(name)
        if let inner = payload.first { object["payload"] = inner.json(showsSecrets: showsSecrets) }
        if let error { object["error"] = .string("\(error)") }
        return .object(object)
    }
}

extension PacketDescription.Value {
    fileprivate static func object(_ fields: [PacketDescription.Field], _ showsSecrets: Bool) -> [String: JSONValue] {
        var object: [String: JSONValue] = [:]
        for field in fields where showsSecrets || !field.isSecret {
            object[field.name] = field.value.json(showsSecrets)
        }
        return object
    }

    private func json(_ showsSecrets: Bool) -> JSONValue {
        switch self {
        case .number(let number): .int(number)
        case .fraction(let number): .double(number)
        case .flag(let flag): .bool(flag)
        case .text(let text): .string(text)
        case .bytes(let bytes): .string(bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())
        case .list(let values): .array(values.map { $0.json(showsSecrets) })
        case .group(let fields): .object(Self.object(fields, showsSecrets))
        }
    }
}
