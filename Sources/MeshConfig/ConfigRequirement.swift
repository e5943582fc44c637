// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Something that a configuration relies on and that lies outside of it: a file, a folder, an address. Reading a
/// configuration only lists them; whether they are there is for others to find out.
public struct ConfigRequirement: Sendable, Hashable {
    public enum Thing: Sendable, Hashable {
        /// The folder of what must survive a restart; made when it is missing.
        case stateFolder(String)
        /// The socket of the command line.
        case controlSocket(String)
        /// An address of a share.
        case listener(ListenAddress)
        /// The certificate of a share, at the requirement's position, and its key.
        case certificate(ShareTLSConfig, keyPosition: SourcePosition)
        /// What the clients of a token prove to know.
        case token(ShareTokenConfig)
        /// A secret option of a device.
        case option(String, SecretReference)
    }

    public var thing: Thing
    /// Where it is asked for; ``SourcePosition/builtIn`` for a default.
    public var position: SourcePosition
    /// What asks for it, such as `[[device]] "roof"`.
    public var section: String?

    public init(_ thing: Thing, at position: SourcePosition, in section: String?) {
        self.thing = thing
        self.position = position
        self.section = section
    }

    /// Whether the host does not start without it. What a device lacks keeps that device alone from its link.
    public var isNeededToStart: Bool {
        if case .option = thing { false } else { true }
    }
}
