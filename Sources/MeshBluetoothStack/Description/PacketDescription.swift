// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// What a packet says, in the specification's names: for people who read a recording, and for programs.
///
/// Made by ``HCIPacketDescriber``, ``ATTPacketDescriber`` and ``SMPPacketDescriber``, which never fail: whatever the bytes
/// are, there is a description, and what could not be read is its ``error``.
public struct PacketDescription: Sendable, Hashable {
    /// Whose packet it is.
    public enum Layer: String, Sendable, Hashable {
        case command = "hci-command"
        case event = "hci-event"
        case acl = "hci-acl"
        /// Isochronous and synchronous data, which are not looked into.
        case other = "hci-other"
        case l2cap
        case signalling
        case att
        case smp
    }

    /// What a field holds.
    public indirect enum Value: Sendable, Hashable {
        case number(Int64)
        /// In the unit that the field's name ends with.
        case fraction(Double)
        case flag(Bool)
        case text(String)
        case bytes([UInt8])
        case list([Value])
        case group([Field])
    }

    /// A field by its name in the specification, in lower case, with its unit behind it: `connection_interval_ms`.
    public struct Field: Sendable, Hashable {
        public var name: String
        public var value: Value
        /// A key: not for everybody's eyes.
        public var isSecret: Bool

        public init(_ name: String, _ value: Value, isSecret: Bool = false) {
            self.name = name
            self.value = value
            self.isSecret = isSecret
        }
    }

    public var layer: Layer
    /// Such as `LE Create Connection`; `unknown` for a code without a layout here.
    public var name: String
    public var fields: [Field] = []
    /// The packet inside, if it begins here.
    public var payload: [PacketDescription] = []
    /// Why the rest could not be read, and where it begins.
    public var error: DecodeError?

    public init(_ layer: Layer, _ name: String) {
        self.layer = layer
        self.name = name
    }

    /// A whole packet as `read` finds it; what it throws is the description's ``error``.
    init(
        _ layer: Layer, _ name: String, of bytes: [UInt8],
        _ read: (inout ByteReader, inout PacketDescription) throws(DecodeError) -> Void
    ) {
        var description = PacketDescription(layer, name)
        do throws(DecodeError) {
            try ByteReader.decode(bytes) { (reader) throws(DecodeError) in try read(&reader, &description) }
        } catch {
            description.error = error
        }
        self = description
    }

    /// This and all that is inside of it, the outermost first.
    public var all: [PacketDescription] { [self] + payload.flatMap(\.all) }
}

extension PacketDescription {
    /// One line for people. Keys are left out unless `showsSecrets`.
    public func line(showsSecrets: Bool = false) -> String {
        all.map { packet in
            var words = ["\(packet.layer.rawValue) \(packet.name)"]
            for field in packet.fields where showsSecrets || !field.isSecret {
                words.append("\(field.name)=\(field.value.text(showsSecrets))")
            }
            if let error = packet.error { words.append("error: \(error)") }
            return words.joined(separator: " ")
        }.joined(separator: " | ")
    }
}

extension PacketDescription.Value {
    fileprivate func text(_ showsSecrets: Bool) -> String {
        switch self {
        case .number(let number): "\(number)"
        case .fraction(let number): "\(number)"
        case .flag(let flag): "\(flag)"
        // Quoted like a Swift literal: what comes from the air may hold anything.
        case .text(let text): text.allSatisfy(\.isPlain) && !text.isEmpty ? text : text.debugDescription
        case .bytes(let bytes): bytes.isEmpty ? "-" : PacketDescription.hex(bytes)
        case .list(let values): "[" + values.map { $0.text(showsSecrets) }.joined(separator: " ") + "]"
        case .group(let fields):
            "{"
                + fields.filter { showsSecrets || !$0.isSecret }.map { "\($0.name)=\($0.value.text(showsSecrets))" }
                .joined(separator: " ") + "}"
        }
    }
}

extension Character {
    fileprivate var isPlain: Bool { isASCII && (isLetter || isNumber || "-+_.:/,()".contains(self)) }
}

extension PacketDescription {
    static func hex(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Such as `0x0040`.
    static func hex(_ number: UInt64, byteCount: Int) -> String {
        let digits = String(number, radix: 16)
        return "0x" + String(repeating: "0", count: max(0, byteCount * 2 - digits.utf8.count)) + digits
    }
}
