// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// `[[share]]`: a local endpoint through which clients use a device.
public struct ShareConfig: Sendable, Hashable {
    public var name: String?
    public var kind: ShareKind
    /// A configured device whose protocol is companion.
    public var device: String
    /// At least one address.
    public var listen: [ListenAddress]
    /// The most a client may do; not looked at where there are ``tokens``.
    public var role = ConfigSchema.Share.role.fallback
    /// Whether an address outside this host was asked for in so many words.
    public var isInsecure = ConfigSchema.Share.insecure.fallback
    /// Nil where clients speak without TLS.
    public var tls: ShareTLSConfig?
    /// Who may use the share; everybody who can connect if there are none.
    public var tokens: [ShareTokenConfig] = []
    public var maximumClients = ConfigSchema.Share.maxClients.fallback
    public var queueFrames = ConfigSchema.Share.queueFrames.fallback
    public var queueBytes = ConfigSchema.Share.queueBytes.fallback
    public var stuckTimeout = ConfigSchema.Share.stuckTimeout.fallback
    /// Whether clients get received-packet logs (push 0x88).
    public var receivedPacketLogs = ConfigSchema.Share.rxLog.fallback
    /// Whether clients see what others send to channels.
    public var echoes = ConfigSchema.Share.echo.fallback
    /// How much of the time the sends of all clients may be on the air; 0 for no limit.
    public var airtimePercent = ConfigSchema.Share.airtimePercent.fallback
    /// How much time on the air may be used at once after a pause.
    public var airtimeBurst = ConfigSchema.Share.airtimeBurst.fallback
    /// The `[[share]]` header.
    public var position: SourcePosition = .none
    /// Its number among shares that would otherwise have the same ``id``, from 1.
    var ordinal = 1

    public init(name: String? = nil, kind: ShareKind, device: String, listen: [ListenAddress]) {
        self.name = name
        self.kind = kind
        self.device = device
        self.listen = listen
    }

    /// What tells it from every other share: its name, else its device and where it listens. Two shares of one device on
    /// the same address can only be on port 0; they are numbered in the order of the file.
    public var id: String { ordinal == 1 ? unnumberedID : "\(unnumberedID) #\(ordinal)" }

    var unnumberedID: String {
        name ?? "\(device) \(listen.map(\.description).joined(separator: ", "))"
    }
}

/// What clients of a share speak.
public enum ShareKind: String, Sendable, Hashable, CaseIterable {
    case companionTCP = "companion-tcp"
    case companionUnix = "companion-unix"
}

/// The most a client of a share may do.
public enum ShareRole: String, Sendable, Hashable, CaseIterable {
    case observe
    case chat
    case admin
    case owner
}

/// `tls_certificate` and `tls_key` of a share: files in PEM form.
public struct ShareTLSConfig: Sendable, Hashable {
    /// The server's certificate, then those that vouch for it.
    public var certificate: String
    public var key: String

    public init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }
}

/// `[[share.token]]`: somebody who may use a share.
public struct ShareTokenConfig: Sendable, Hashable {
    public var name: String
    /// The most its clients may do.
    public var role = ConfigSchema.Token.role.fallback
    public var secret: SecretReference

    /// A secret that can be guessed is none: whoever listens to one proof can try as many as they like.
    static let shortestSecret = 16

    public init(name: String, secret: SecretReference) {
        self.name = name
        self.secret = secret
    }

    /// Reads the secret. Throws what ``SecretReference/resolve(_:)`` does, and
    /// ``MeshError/Code-swift.struct/configurationInvalid`` for one that is too short.
    public func resolvedSecret(_ source: SecretSource) throws(MeshError) -> String {
        let text: String
        do throws(MeshError) {
            text = try secret.resolve(source)
        } catch {
            throw MeshError(error.code, "token \"\(name)\": \(error.message)", cause: error.cause)
        }
        guard text.count >= Self.shortestSecret else {
            throw MeshError(
                .configurationInvalid,
                "token \"\(name)\": its secret has \(text.count) characters; \(Self.shortestSecret) are the least")
        }
        return text
    }
}
