// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshStream
public import MeshTransportAPI

/// What a ``TCPTransport`` needs to know.
public struct TCPSettings: Sendable, Hashable {
    public var endpoint: TCPEndpoint
    /// For the whole of `connect`: look-up and all addresses.
    public var connectTimeout: Duration
    /// How long written frames may wait without any of them going to the kernel.
    public var writeTimeout: Duration
    /// Silence after which the kernel probes the peer.
    public var keepaliveIdle: Duration
    /// How long sent bytes may stay unacknowledged.
    public var userTimeout: Duration
    /// The largest payload of a frame, in bytes, both ways.
    public var maximumFrame: Int
    public var partialFrameTimeout: Duration
    /// Whether frames that fit no layout of companion radios are searched for others.
    public var checksLayout: Bool

    /// The defaults are those of ``options``.
    public init(
        endpoint: TCPEndpoint, connectTimeout: Duration = .seconds(10), writeTimeout: Duration = .seconds(5),
        keepaliveIdle: Duration = .seconds(30), userTimeout: Duration = .seconds(20), maximumFrame: Int = 176,
        partialFrameTimeout: Duration = .seconds(2), checksLayout: Bool = true
    ) {
        self.endpoint = endpoint
        self.connectTimeout = connectTimeout
        self.writeTimeout = writeTimeout
        self.keepaliveIdle = keepaliveIdle
        self.userTimeout = userTimeout
        self.maximumFrame = maximumFrame
        self.partialFrameTimeout = partialFrameTimeout
        self.checksLayout = checksLayout
    }

    /// The option table of the module. 176 is `MAX_FRAME_SIZE` of firmware src/helpers/BaseSerialInterface.h; connect
    /// and write deadlines are those of MeshCore One (reconnection §1.2).
    public static let options: [OptionSpec] =
        [
            OptionSpec(
                "host", .string, default: nil,
                help:
                    "The radio's name or address, with a port if it is not 5000: \"name:port\" or \"[2001:db8::1]:5000\"."
            ),
            OptionSpec("connect_timeout", .duration, default: "10s", help: "How long one connection attempt may take."),
            OptionSpec(
                "write_timeout", .duration, default: "5s",
                help: "The link is given up when written frames wait this long without progress."),
            OptionSpec(
                "keepalive_idle", .duration, default: "30s",
                help: "Silence after which the kernel probes the radio, in whole seconds."),
            OptionSpec(
                "user_timeout", .duration, default: "20s",
                help: "The link is given up when sent bytes stay unacknowledged this long."),
        ] + CompanionStream.Configuration.options

    /// Reads validated options; with issues there are no settings.
    public static func read(_ options: OptionValues) -> (settings: TCPSettings?, issues: [OptionIssue]) {
        var issues: [OptionIssue] = []
        var endpoint: TCPEndpoint?
        do {
            endpoint = try TCPEndpoint(parsing: options.string("host"))
        } catch {
            issues.append(error.issue(for: options.string("host")))
        }
        for name in ["connect_timeout", "write_timeout", "partial_frame_timeout"] where options.duration(name) <= .zero
        {
            issues.append(OptionIssue(option: name, message: "\(name) must be longer than 0", hint: "for example 5s"))
        }
        // The kernel counts keep-alive times in whole seconds, up to 32767 (tcp(7), TCP_KEEPIDLE).
        for name in ["keepalive_idle", "user_timeout"]
        where !(.seconds(1) ... .seconds(32_767)).contains(options.duration(name)) {
            issues.append(
                OptionIssue(option: name, message: "\(name) must be from 1s to 9h", hint: "for example 30s"))
        }
        let maximumFrame = CompanionStream.Configuration.maximumFrame(options, &issues)
        guard let endpoint, issues.isEmpty else { return (nil, issues) }
        let settings = TCPSettings(
            endpoint: endpoint, connectTimeout: options.duration("connect_timeout"),
            writeTimeout: options.duration("write_timeout"), keepaliveIdle: options.duration("keepalive_idle"),
            userTimeout: options.duration("user_timeout"), maximumFrame: maximumFrame,
            partialFrameTimeout: options.duration("partial_frame_timeout"), checksLayout: options.bool("layout_check"))
        return (settings, [])
    }
}

extension TCPEndpoint.ParseFailure {
    fileprivate func issue(for text: String) -> OptionIssue {
        let example = "for example \"radio.local\" or \"192.0.2.1:5000\""
        let (message, hint): (String, String) =
            switch self {
            case .empty: ("host \"\(text)\" has no name", example)
            case .whitespace: ("host \"\(text)\" holds a space", example)
            case .missingBracket: ("host \"\(text)\" has no closing bracket", example)
            case .badPort(let port): ("\"\(port)\" is not a port from 1 to 65535", example)
            case .scheme(let rest):
                ("host \"\(text)\" is a URL; it must be a name or an address", "write \"\(rest)\"")
            case .missingBrackets(let host, let port):
                (
                    "host \"\(text)\" may end with a port or be an address as a whole; an IPv6 address with a port"
                        + " needs brackets",
                    "write \"[\(host)]:\(port)\", or \"[\(text)]\" for the address alone"
                )
            case .notIPv6:
                ("host \"\(text)\" has several colons and is no IPv6 address", example + " or \"[2001:db8::1]:5000\"")
            }
        return OptionIssue(option: "host", message: message, hint: hint)
    }
}
