// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
internal import MeshTransportAPI
internal import MeshWire

/// What was found of a device's attributes, as it is stored with its bond.
extension RemoteDatabase {
    var json: JSONValue {
        let (name, value): (String, [UInt8]) =
            switch tag {
            case .hash(let hash): ("hash", hash)
            case .firmware(let text): ("firmware", text)
            case .absent: ("none", [])
            }
        return [
            "tag": .string(name), "value": .array(value.map { .int(Int64($0)) }),
            "services": .array(services.map(\.json)),
            "configurations": .array(
                configurations.sorted { $0.key < $1.key }.map { [.int(Int64($0.key)), .int(Int64($0.value))] }),
            "service_changed": serviceChanged.map { .int(Int64($0)) } ?? .null,
        ]
    }

    /// Nil for anything but what ``json`` gives.
    init?(json: JSONValue) {
        guard let services = json["services"]?.arrayValue, let configurations = json["configurations"]?.arrayValue,
            let value = json["value"]?.arrayValue?.map({ $0.intValue.flatMap { UInt8(exactly: $0) } })
        else { return nil }
        let bytes = value.compactMap { $0 }
        switch json["tag"]?.stringValue {
        case "hash" where bytes.count == 16: self.init(tag: .hash(bytes))
        case "firmware" where !bytes.isEmpty: self.init(tag: .firmware(bytes))
        case "none": self.init(tag: .absent)
        default: return nil
        }
        for entry in services {
            guard let service = Service(json: entry) else { return nil }
            self.services.append(service)
        }
        for entry in configurations {
            guard let pair = entry.arrayValue, pair.count == 2, let value = pair[0].handle, let handle = pair[1].handle
            else { return nil }
            self.configurations[value] = handle
        }
        serviceChanged = json["service_changed"]?.handle
    }
}

extension RemoteDatabase.Service {
    fileprivate var json: JSONValue {
        [
            "uuid": .string("\(service.uuid)"), "first": .int(Int64(service.range.first)),
            "last": .int(Int64(service.range.last)),
            "characteristics": .array(
                characteristics.map {
                    [
                        "uuid": .string("\($0.uuid)"), "properties": .int(Int64($0.properties)),
                        "declaration": .int(Int64($0.declarationHandle)), "value": .int(Int64($0.valueHandle)),
                    ]
                }),
        ]
    }

    fileprivate init?(json: JSONValue) {
        guard let uuid = json["uuid"]?.uuid, let first = json["first"]?.handle, let last = json["last"]?.handle,
            first <= last, let entries = json["characteristics"]?.arrayValue
        else { return nil }
        var characteristics: [RemoteCharacteristic] = []
        for entry in entries {
            guard let uuid = entry["uuid"]?.uuid, let declaration = entry["declaration"]?.handle,
                let value = entry["value"]?.handle,
                let properties = entry["properties"]?.intValue.flatMap({ UInt8(exactly: $0) }),
                first <= declaration, declaration < value, value <= last,
                declaration > characteristics.last?.valueHandle ?? 0
            else { return nil }
            characteristics.append(
                RemoteCharacteristic(
                    uuid: uuid, properties: properties, declarationHandle: declaration, valueHandle: value))
        }
        self.init(RemoteService(uuid: uuid, range: .init(first, last)), characteristics: characteristics)
    }
}

extension JSONValue {
    fileprivate var handle: UInt16? { intValue.flatMap { UInt16(exactly: $0) }.flatMap { $0 == 0 ? nil : $0 } }
    fileprivate var uuid: BluetoothUUID? { stringValue.flatMap { BluetoothUUID($0) } }
}
