// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// One thing that is wrong with a configuration, or worth a warning, and where.
public struct ConfigDiagnostic: Error, Sendable, Hashable {
    /// Whether the configuration can be used all the same.
    public enum Severity: String, Sendable, Hashable {
        case error
        case warning
    }

    public var severity: Severity
    public var code: Code
    public var position: SourcePosition
    /// What it is about, such as `[[device]] "roof"`; nil for a whole file.
    public var section: String?
    /// What is wrong, with the value in question. Never the value of a secret.
    public var message: String
    /// What to write instead. Lines after the first are shown below the source line.
    public var hint: String?
    /// The line of the file, unless it is unknown or holds a secret.
    public var sourceLine: String?

    public init(
        _ severity: Severity, _ code: Code, at position: SourcePosition, in section: String? = nil, _ message: String,
        hint: String? = nil, sourceLine: String? = nil
    ) {
        self.severity = severity
        self.code = code
        self.position = position
        self.section = section
        self.message = message
        self.hint = hint
        self.sourceLine = sourceLine
    }
}

extension ConfigDiagnostic {
    /// What kind of thing is wrong. The raw values are stable: scripts and documentation refer to them.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// A file is missing, unreadable or too long.
        case fileUnreadable = "C0001"
        /// The text is not TOML, or not JSON.
        case syntax = "C0002"
        /// No configuration file was found at all.
        case nothingFound = "C0003"
        /// A value has another type than its key takes.
        case wrongType = "C0101"
        /// Nothing is known by this name.
        case unknownKey = "C0102"
        /// A required key is missing.
        case missingKey = "C0103"
        /// The value has the right type and means nothing.
        case valueNotAllowed = "C0104"
        /// A number or duration is too small or too large.
        case outOfRange = "C0105"
        /// A name is used twice.
        case nameTaken = "C0106"
        /// One module option is written twice in one device.
        case optionGivenTwice = "C0107"
        /// A later layer gives a key a value of another type.
        case retyped = "C0108"
        /// An environment variable or a `--set` argument names nothing that could be set.
        case overrideUnusable = "C0109"
        /// The file is written for another version of the format.
        case versionUnsupported = "C0110"
        /// A device's module cannot be used.
        case moduleUnavailable = "C0201"
        /// A share names a device that is not configured.
        case deviceUnknown = "C0202"
        /// A share needs a device whose protocol the host speaks.
        case deviceNotShareable = "C0203"
        /// A listener would be open to the network, and that was not asked for.
        case listenerExposed = "C0204"
        /// Two listeners want the same address.
        case listenerTaken = "C0205"
        /// A module refuses its options.
        case optionRefused = "C0206"
        /// Two values contradict each other.
        case contradiction = "C0207"
        /// Two devices are one.
        case deviceTwice = "C0208"
        /// A secret stands in the configuration itself.
        case secretInline = "C0301"
        /// A reference to a secret is malformed.
        case secretReferenceMalformed = "C0302"
        /// A secret is not where its reference says, or cannot be used.
        case secretUnusable = "C0401"
        /// A share's certificate or key cannot be used.
        case certificateUnusable = "C0402"
        /// An address cannot be listened on.
        case addressUnusable = "C0403"
        /// The state folder cannot be used, or others could change what is in it.
        case stateFolderUnusable = "C0404"
    }
}
