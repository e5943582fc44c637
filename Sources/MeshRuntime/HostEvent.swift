// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI

/// One thing that happened, as everybody beside the links sees it: `{v, seq, ts, device, type, data}`.
public struct HostEvent: Sendable {
    /// What is told about it. Turned into JSON only by those who need JSON.
    public enum Payload: Sendable {
        case none
        case json(JSONValue)
        /// One frame of the device's protocol.
        case frame(Data)
    }

    /// The version of the schema.
    public static let version: Int64 = 1

    /// Rises with each event since the host started. Not without gaps: frames count only while somebody listens to them.
    public var sequence: UInt64
    /// The wall clock, as the time since 1970-01-01 UTC.
    public var time: Duration
    /// The configured device name, nil where it concerns none.
    public var device: String?
    /// Dotted, such as `link.up`.
    public var type: EventType
    public var payload: Payload

    public init(sequence: UInt64, time: Duration, device: String?, type: EventType, payload: Payload) {
        self.sequence = sequence
        self.time = time
        self.device = device
        self.type = type
        self.payload = payload
    }

    /// The time as RFC 3339 in UTC with milliseconds, such as `2026-03-01T12:00:00.250Z`.
    public var timestamp: String { RFC3339.text(sinceEpoch: time) }

    /// The payload alone. A frame is `{"hex": "16…", "length": 58}`.
    public var data: JSONValue {
        switch payload {
        case .none: [:]
        case .json(let value): value
        case .frame(let frame): ["hex": .string(hexadecimal(frame)), "length": .int(Int64(frame.count))]
        }
    }

    /// The whole event.
    public var json: JSONValue {
        [
            "v": .int(Self.version), "seq": .int(Int64(clamping: sequence)), "ts": .string(timestamp),
            "device": device.map { .string($0) } ?? .null, "type": .string(type.name), "data": data,
        ]
    }

    private func hexadecimal(_ bytes: Data) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(unsafeUninitializedCapacity: bytes.count * 2) { buffer in
            var index = 0
            for byte in bytes {
                buffer[index] = digits[Int(byte >> 4)]
                buffer[index + 1] = digits[Int(byte & 15)]
                index += 2
            }
            return index
        }
    }
}

/// The kind of an event: words joined by dots, of which the first is the family.
public struct EventType: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let name: String
    /// Frames are told only to those who ask for them, and never kept.
    let isFrame: Bool

    public init(_ name: String) {
        self.name = name
        isFrame = name.utf8.starts(with: "frame.".utf8)
    }

    public init(stringLiteral name: String) {
        self.init(name)
    }

    public var description: String { name }

    /// Whether `pattern` is this type or one of its families: `link` and `link.up` match `link.up`.
    public func matches(_ pattern: String) -> Bool {
        let name = name.utf8
        let pattern = pattern.utf8
        guard name.starts(with: pattern) else { return false }
        return name.count == pattern.count || name.dropFirst(pattern.count).first == UInt8(ascii: ".")
    }

    public static let frameReceived: EventType = "frame.rx"
    public static let frameSent: EventType = "frame.tx"
}
