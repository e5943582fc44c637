// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What a node is (`ADV_TYPE_*`, firmware src/helpers/AdvertDataHelpers.h).
public struct NodeType: RawRepresentable, Sendable, Hashable {
    public static let unknown = NodeType(rawValue: 0)
    public static let chat = NodeType(rawValue: 1)
    public static let repeater = NodeType(rawValue: 2)
    public static let room = NodeType(rawValue: 3)
    public static let sensor = NodeType(rawValue: 4)

    public var rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }
}
