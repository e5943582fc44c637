// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshCrypto
public import MeshLoop
public import MeshTransportAPI

/// What code hands in for a ``ShareBridge``.
public struct BridgeSettings: Sendable {
    /// The token that the share is shown.
    public struct Token: Sendable {
        public var name: String
        public var secret: String

        public init(name: String, secret: String) {
            self.name = name
            self.secret = secret
        }
    }

    /// The share's host, a name or an address.
    public var host: String
    public var port: UInt16
    /// Nil for a share without TLS.
    public var tls: TLSContext.Trust?
    /// Nil for a share without tokens.
    public var token: Token?
    /// Where programs of this machine connect.
    public var addresses: [SocketAddress]
    /// Programs at a time; further ones are closed at once.
    public var maximumClients = 16
    /// How long all may take that happens before a connection can be used: name, connection, TLS, proof.
    public var openingLimit = Duration.seconds(15)

    public init(
        host: String, port: UInt16, tls: TLSContext.Trust? = nil, token: Token? = nil, addresses: [SocketAddress]
    ) {
        self.host = host
        self.port = port
        self.tls = tls
        self.token = token
        self.addresses = addresses
    }

    /// `host:port`, for people.
    public var remote: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// What a ``ShareBridge`` tells of.
public enum BridgeEvent: Sendable {
    /// Programs can connect there.
    case listening(address: String)
    /// A program's connection reaches the share. `tls` is such as `TLSv1.3`, nil without.
    case opened(client: UInt64, peer: String, tls: String?)
    /// One of the two closed it in good order.
    case closed(client: UInt64, by: BridgeSide)
    /// It never reached the share, or broke.
    case failed(client: UInt64, MeshError)
}

/// A side of a bridge.
public enum BridgeSide: String, Sendable, Hashable {
    /// The program on this machine.
    case client
    /// The share.
    case share
}
