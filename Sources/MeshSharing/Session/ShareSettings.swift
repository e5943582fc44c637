// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshCompanion
public import MeshLoop

/// What code hands in to open one share.
public struct ShareSettings: Sendable {
    /// Names it in events and lists, such as `companion-tcp 127.0.0.1:5000`.
    public var name: String
    /// `companion-tcp` or `companion-unix`.
    public var type: String
    /// Stands for the share in the names that clients are remembered by; it should stay the same over restarts.
    public var identityName: String
    /// Where it listens.
    public var addresses: [SocketAddress]
    /// The most a client may do; where there are tokens, each has its own.
    public var role: ClientRole
    /// Who may come in; everybody if there are none.
    public var tokens: [ShareToken]
    /// Nil for clients without TLS.
    public var tls: ShareTLS?
    /// Clients at a time; further ones are closed at once.
    public var maximumClients: Int
    /// Frames that may wait for a client that does not read.
    public var queueFrames: Int
    /// Bytes that may wait for a client that does not read.
    public var queueBytes: Int
    /// How long a client may take nothing while frames wait for it.
    public var stuckTimeout: Duration
    /// Whether clients get received-packet logs (push 0x88), the most frequent of all frames.
    public var receivedPacketLogs: Bool
    /// Whether clients see what other clients send to channels, as messages from the radio itself.
    public var echoes: Bool
    /// How much of the time the sends of all its clients may be on the air, percent; 0 for no limit.
    public var airtimePercent: Double
    /// How much time on the air may be used at once after a pause.
    public var airtimeBurst: Duration

    public init(
        name: String, type: String, identityName: String? = nil, addresses: [SocketAddress], role: ClientRole = .chat,
        tokens: [ShareToken] = [], tls: ShareTLS? = nil, maximumClients: Int = 16, queueFrames: Int = 256,
        queueBytes: Int = 65_536,
        stuckTimeout: Duration = .seconds(30), receivedPacketLogs: Bool = false, echoes: Bool = false,
        airtimePercent: Double = 10, airtimeBurst: Duration = .seconds(60)
    ) {
        self.name = name
        self.identityName = identityName ?? name
        self.receivedPacketLogs = receivedPacketLogs
        self.echoes = echoes
        self.airtimePercent = airtimePercent
        self.airtimeBurst = airtimeBurst
        self.type = type
        self.addresses = addresses
        self.role = role
        self.tokens = tokens
        self.tls = tls
        self.maximumClients = maximumClients
        self.queueFrames = queueFrames
        self.queueBytes = queueBytes
        self.stuckTimeout = stuckTimeout
    }

    /// Whether a client with this token may be here; nil for one that has shown none.
    func admits(_ token: ShareToken?) -> Bool {
        token.map { tokens.contains($0) } ?? tokens.isEmpty
    }
}

/// Somebody who may use a share.
public struct ShareToken: Sendable, Hashable {
    public var name: String
    /// The most its clients may do.
    public var role: ClientRole
    public var secret: String

    public init(name: String, role: ClientRole, secret: String) {
        self.name = name
        self.role = role
        self.secret = secret
    }
}

/// What a share needs for TLS, in PEM.
public struct ShareTLS: Sendable, Hashable {
    /// The server's certificate, then those that vouch for it.
    public var certificates: [UInt8]
    /// The private key of the first, without a passphrase.
    public var key: [UInt8]

    public init(certificates: [UInt8], key: [UInt8]) {
        self.certificates = certificates
        self.key = key
    }
}

/// One share as it stands.
public struct ShareSnapshot: Sendable, Hashable {
    public var name: String
    public var type: String
    /// The bound address; the chosen port where the config said 0.
    public var listen: String
    public var clients: Int
    /// Whether clients speak TLS.
    public var hasTLS: Bool
    /// The names of its tokens.
    public var tokens: [String]
}

/// One client as it stands.
public struct ClientSnapshot: Sendable, Hashable {
    /// Unique in the life of the daemon.
    public var id: UInt64
    public var device: String
    public var share: String
    /// The peer's address, or its process and user for a Unix socket.
    public var peer: String
    public var role: ClientRole
    /// The name of its token; nil on a share without.
    public var token: String?
    /// Such as `TLSv1.3`; nil without TLS.
    public var tls: String?
    /// The name that the program gave in APP_START; nil before it.
    public var app: String?
    /// Which of several such programs it is, beginning with 1.
    public var slot: Int?
    /// The protocol version it asked for.
    public var version: UInt8
    /// Whether there are messages that it has not read; nil before it said who it is.
    public var unread: Bool?
    /// Frames from the client.
    public var framesIn: UInt64
    /// Frames to the client.
    public var framesOut: UInt64
    /// Frames that wait for it to read.
    public var queueFrames: Int
    /// Bytes that wait for it to read, those in the kernel not counted.
    public var queueBytes: Int
    /// Frames dropped since it joined.
    public var dropped: UInt64
}

/// Why a client's connection ended.
public enum LeaveReason: String, Sendable, Hashable, CaseIterable {
    /// The client closed it.
    case closed
    /// The connection broke.
    case failed
    /// The client took nothing for too long while frames waited.
    case stuck
    /// Replies found no room in its queue.
    case overflow
    /// The share has as many clients as it may have.
    case refused
    /// It never became a client: no TLS, no proof of a token, or too many that failed before.
    case denied
    /// The share was removed or the daemon stops.
    case shareClosed = "share-closed"

    /// Whether the host ended a connection that was as it should be.
    var isByOrder: Bool { self == .shareClosed || self == .denied }
}
