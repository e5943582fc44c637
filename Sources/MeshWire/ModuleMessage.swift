// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The head of one message between the host and a module in a process of its own; the payload follows it.
///
/// 24 bytes, little-endian: kind, flags, two zeros, `code` (32 bits, signed), `link` (64), `cookie` (64). What the last three
/// mean, and what the payload is, depends on the kind; the page "ModuleWire" of the handbook has the table.
public struct ModuleMessage: Sendable, Hashable {
    /// The version of the protocol that this is.
    public static let version: Int64 = 1
    /// The size of the head.
    public static let headLength = 24
    /// No message is longer, its head included.
    public static let maximumLength = 65_536
    /// The longest text or document that is sent in parts.
    public static let maximumDocument = 1 << 20
    /// The longest frame.
    public static let maximumFrame = 4_096

    /// Who sends a message.
    public enum Sender: Sendable, Hashable, CaseIterable {
        case host
        case module
    }

    /// What a message says.
    public enum Kind: UInt8, Sendable, Hashable, CaseIterable {
        case hello = 1
        case ping = 2
        case pong = 3
        // From the host.
        case start = 16
        case stop = 17
        case connect = 18
        case disconnect = 19
        case send = 20
        case credit = 21
        case scan = 22
        case manage = 23
        case cancel = 24
        case diagnose = 25
        case validate = 26
        case forget = 27
        case identify = 28
        // From the module.
        case refused = 64
        case started = 65
        case stopped = 66
        case linkUp = 67
        case linkDown = 68
        case sent = 69
        case frame = 70
        case found = 71
        case metric = 72
        case linkEvent = 73
        case scanned = 74
        case managed = 75
        case diagnostics = 76
        case validated = 77
        case log = 78
        case frames = 79
        case identified = 80
    }

    /// Flags of a head.
    public struct Flags: OptionSet, Sendable, Hashable {
        public let rawValue: UInt8

        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The document goes on in the next message of this kind.
        public static let more = Flags(rawValue: 1)
        /// Of ``Kind/send``: the frame is done without the peer's acknowledgement.
        public static let withoutResponse = Flags(rawValue: 2)
    }

    public var kind: Kind
    public var flags: Flags
    public var code: Int32
    public var link: UInt64
    public var cookie: UInt64

    public init(_ kind: Kind, flags: Flags = [], code: Int32 = 0, link: UInt64 = 0, cookie: UInt64 = 0) {
        self.kind = kind
        self.flags = flags
        self.code = code
        self.link = link
        self.cookie = cookie
    }

    // MARK: Coding

    /// The head of a whole message of this sender. What follows the first ``headLength`` bytes is the payload; its length
    /// has been checked, its content has not.
    public init(decoding bytes: UnsafeRawBufferPointer, from sender: Sender) throws(DecodeError) {
        guard bytes.count <= Self.maximumLength else {
            throw DecodeError(.trailing(count: bytes.count - Self.maximumLength), offset: Self.maximumLength)
        }
        var reader = ByteReader(bytes)
        let code = try reader.read(UInt8.self)
        guard let kind = Kind(rawValue: code), kind.isSent(by: sender) else {
            throw DecodeError(.unknownCode(code), offset: 0)
        }
        let flags = Flags(rawValue: try reader.read(UInt8.self))
        guard kind.flags.isSuperset(of: flags) else { throw DecodeError(.invalidField("flags"), offset: 1) }
        guard try reader.read(UInt16.self) == 0 else { throw DecodeError(.invalidField("reserved"), offset: 2) }
        self.kind = kind
        self.flags = flags
        self.code = try reader.read()
        link = try reader.read()
        cookie = try reader.read()
        guard kind.payload.contains(reader.remaining) else {
            throw DecodeError(.invalidField("length"), offset: Self.headLength)
        }
    }

    /// Writes the head into the first ``headLength`` bytes.
    public func write(into bytes: UnsafeMutableRawBufferPointer) {
        precondition(bytes.count >= Self.headLength)
        bytes[0] = kind.rawValue
        bytes[1] = flags.rawValue
        bytes.storeBytes(of: 0, toByteOffset: 2, as: UInt16.self)
        bytes.storeBytes(of: code.littleEndian, toByteOffset: 4, as: Int32.self)
        bytes.storeBytes(of: link.littleEndian, toByteOffset: 8, as: UInt64.self)
        bytes.storeBytes(of: cookie.littleEndian, toByteOffset: 16, as: UInt64.self)
    }

    /// The whole message.
    public func encoded(_ payload: [UInt8] = []) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Self.headLength)
        bytes.withUnsafeMutableBytes { write(into: $0) }
        return bytes + payload
    }
}

extension ModuleMessage.Kind {
    /// Whether this side may say it.
    public func isSent(by sender: ModuleMessage.Sender) -> Bool {
        switch self {
        case .hello: true
        case .ping, .start, .stop, .connect, .disconnect, .send, .credit, .scan, .manage, .cancel, .diagnose, .validate,
            .forget, .identify:
            sender == .host
        case .pong, .refused, .started, .stopped, .linkUp, .linkDown, .sent, .frame, .found, .metric, .linkEvent,
            .scanned, .managed, .diagnostics, .validated, .log, .frames, .identified:
            sender == .module
        }
    }

    /// Whether the payload is a document, which may be sent in parts.
    public var isDocument: Bool {
        switch self {
        case .hello, .start, .connect, .scan, .manage, .validate, .identify, .managed, .diagnostics, .validated: true
        case .ping, .pong, .stop, .disconnect, .send, .credit, .cancel, .diagnose, .forget, .refused, .started,
            .stopped, .linkUp, .linkDown, .sent, .frame, .found, .metric, .linkEvent, .scanned, .log, .frames,
            .identified:
            false
        }
    }

    /// The flags that may be set.
    var flags: ModuleMessage.Flags {
        isDocument ? .more : self == .send ? .withoutResponse : []
    }

    /// How many bytes the payload may have.
    var payload: ClosedRange<Int> {
        switch self {
        case .hello, .start, .connect, .scan, .manage, .validate, .identify, .managed, .diagnostics, .validated, .found:
            0...(ModuleMessage.maximumLength - ModuleMessage.headLength)
        case .send, .frame: 1...ModuleMessage.maximumFrame
        case .frames: 3...(ModuleMessage.maximumLength - ModuleMessage.headLength)
        // Text for people.
        case .refused, .started, .linkUp, .linkDown, .scanned, .metric, .log, .identified: 0...4_096
        case .ping, .pong, .stop, .disconnect, .credit, .cancel, .diagnose, .forget, .stopped, .sent, .linkEvent:
            0...0
        }
    }
}
