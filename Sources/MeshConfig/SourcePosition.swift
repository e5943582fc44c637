// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Where something in a configuration comes from.
public struct SourcePosition: Sendable, Hashable {
    /// A path, `environment variable MESHHOST__…` or `--set KEY`.
    public var source: String
    /// Counts from 1; 0 where only the source is known.
    public var line: Int
    /// Counts Unicode scalars from 1; 0 where only the source is known.
    public var column: Int

    public init(source: String, line: Int = 0, column: Int = 0) {
        self.source = source
        self.line = line
        self.column = column
    }

    /// Stands for "nowhere": built-in defaults, and values that are compared without their place.
    public static let none = SourcePosition(source: "")

    /// What holds because nobody has written anything else.
    public static let builtIn = SourcePosition(source: "built-in default")
}

extension SourcePosition {
    static func environment(_ variable: String) -> SourcePosition {
        SourcePosition(source: environmentPrefix + variable)
    }

    /// `key` only: the value may be a secret.
    static func argument(_ key: String) -> SourcePosition {
        SourcePosition(source: argumentPrefix + key)
    }

    private static let environmentPrefix = "environment variable "
    private static let argumentPrefix = "--set "

    var isEnvironment: Bool { source.hasPrefix(Self.environmentPrefix) }
    var isArgument: Bool { source.hasPrefix(Self.argumentPrefix) }
    /// Whether this is an override and not a file.
    var isOverride: Bool { isEnvironment || isArgument }
}

extension SourcePosition: CustomStringConvertible {
    /// `path:line:column`, or the source alone.
    public var description: String {
        line == 0 ? source : "\(source):\(line):\(column)"
    }
}
