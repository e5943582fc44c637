// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI
internal import MeshWire

/// The devices a scan has found, each once, the nearest first. Pure: time comes in.
struct SightingTable {
    private struct Entry {
        /// The `scan.seen` event.
        var event: JSONValue
        var seen: Duration
        var count = 1
    }

    /// So many are kept. Addresses may be made up by anybody: beyond this, those that were not seen for the longest time
    /// make room.
    private static let limit = 512

    private var entries: [String: Entry] = [:]

    var isEmpty: Bool { entries.isEmpty }

    /// Takes a `scan.seen` event. A name that was heard once stays: not every advertisement has it.
    mutating func take(_ event: JSONValue, now: Duration) {
        guard case .object(var members) = event, let address = members["address"]?.stringValue else { return }
        let key = "\(members["module"]?.stringValue ?? "") \(address)"
        var entry = Entry(event: event, seen: now)
        if let before = entries[key] {
            if members["name"]?.stringValue?.isEmpty != false { members["name"] = before.event["name"] }
            let isKindUnknown = members["kind"]?.stringValue == DeviceKind.unknown.rawValue
            if isKindUnknown { members["kind"] = before.event["kind"] }
            if members["device"] == .null { members["device"] = before.event["device"] }
            entry = Entry(event: .object(members), seen: now, count: before.count + 1)
        } else if entries.count >= Self.limit, let oldest = entries.min(by: { $0.value.seen < $1.value.seen }) {
            entries[oldest.key] = nil
        }
        entries[key] = entry
    }

    /// One object for each device.
    func json(now: Duration) -> [JSONValue] {
        sorted.map { entry in
            var members = entry.event.objectValue ?? [:]
            members["type"] = nil
            members["seen"] = .int(Int64(entry.count))
            members["age_ms"] = .int((now - entry.seen).milliseconds)
            return .object(members)
        }
    }

    /// A table for people; `limit` is how many devices it may have.
    func text(now: Duration, limit: Int = .max) -> String {
        var table = TextTable(header: ["ADDRESS", "NAME", "DBM", "KIND", "DEVICE", "AGE"])
        for entry in sorted.prefix(limit) {
            let event = entry.event
            let kind = event["kind"]?.stringValue.flatMap(DeviceKind.init(rawValue:)) ?? .unknown
            let name = event["name"]?.stringValue ?? ""
            table.add([
                event["address"]?.stringValue ?? "", name.isEmpty ? "(no name)" : name,
                event["rssi"]?.intValue.map { "\($0)" } ?? "-", kind.described,
                event["device"]?.stringValue ?? "-", "\((now - entry.seen).milliseconds / 1_000)s",
            ])
        }
        return table.text
    }

    /// By signal, then by address: devices of one strength must not change places.
    private var sorted: [Entry] {
        entries.sorted { left, right in
            let (a, b) = (left.value.event["rssi"]?.intValue ?? .min, right.value.event["rssi"]?.intValue ?? .min)
            return a == b ? left.key < right.key : a > b
        }.map(\.value)
    }
}
