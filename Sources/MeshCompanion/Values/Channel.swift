// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// A channel of the radio: SET_CHANNEL and CHANNEL_INFO.
public struct Channel: Sendable, Hashable {
    public var index: UInt8
    /// At most 31 bytes.
    public var name: String
    /// The key, 16 bytes: firmware v1.17.1 refuses keys of 32.
    public var secret: Data

    public init(index: UInt8, name: String, secret: Data) {
        self.index = index
        self.name = name
        self.secret = secret
    }

    static let empty = Channel(index: 0, name: "", secret: Data())
}

extension Channel: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.integer("channel", &index)
        // The radio writes the name with strcpy: what follows the NUL is garbage of an older frame.
        try visitor.fixedText("channel_name", &name, length: 32)
        try visitor.bytes("channel_secret", &secret, count: 16, secret: true)
    }
}
