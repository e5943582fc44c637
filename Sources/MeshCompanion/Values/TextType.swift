// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How the text of a message is meant (`TXT_TYPE_*`, firmware src/helpers/TxtDataHelpers.h).
public struct TextType: RawRepresentable, Sendable, Hashable {
    public static let plain = TextType(rawValue: 0)
    /// A command line or its answer. The radio puts its own clock in, and no acknowledgement comes.
    public static let commandLine = TextType(rawValue: 1)
    /// Plain, with the first four bytes of the author's key in front (room servers).
    public static let signed = TextType(rawValue: 2)

    public var rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }
}
