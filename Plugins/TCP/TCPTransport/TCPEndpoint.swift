// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop

/// Where a radio listens, as a user writes it.
public struct TCPEndpoint: Sendable, Hashable {
    /// The port of WiFi and Ethernet companion radios (companion-protocol §1.1).
    public static let defaultPort: UInt16 = 5_000

    /// A name or a numeric address, without brackets.
    public var host: String
    public var port: UInt16

    public init(host: String, port: UInt16 = TCPEndpoint.defaultPort) {
        self.host = host
        self.port = port
    }

    /// The host in one spelling: names in lower case and without the dot at the end that says that they are whole, numeric
    /// addresses as the system writes them.
    public var canonicalHost: String {
        // A zone is a part of the address, and need not be one of this machine.
        if !host.contains("%"), let numeric = SocketAddress(ip: host, port: 0) { return numeric.host }
        let name = host.lowercased()
        return name.hasSuffix(".") ? String(name.dropLast()) : name
    }

    /// Why a text is no endpoint.
    public enum ParseFailure: Error, Sendable, Hashable {
        case empty
        case whitespace
        case missingBracket
        /// The text where the port should be.
        case badPort(String)
        /// What follows `tcp://` or the like.
        case scheme(rest: String)
        /// An IPv6 address and what looks like a port, without brackets.
        case missingBrackets(host: String, port: String)
        /// Several colons in what is no IPv6 address.
        case notIPv6
    }

    /// Reads `name`, `name:port`, `192.0.2.1:5000`, `[2001:db8::1]:5000` or a bare IPv6 address.
    public init(parsing text: String) throws(ParseFailure) {
        guard !text.contains(where: \.isWhitespace) else { throw .whitespace }
        if let scheme = text.firstRange(of: "://") {
            throw .scheme(rest: String(text[scheme.upperBound...].prefix { $0 != "/" }))
        }
        var host = text[...]
        var port: Substring?
        if text.hasPrefix("[") {
            guard let bracket = text.firstIndex(of: "]") else { throw .missingBracket }
            host = text[text.index(after: text.startIndex)..<bracket]
            let rest = text[text.index(after: bracket)...]
            if !rest.isEmpty {
                guard rest.hasPrefix(":") else { throw .badPort(String(rest)) }
                port = rest.dropFirst()
            }
        } else if let colon = text.lastIndex(of: ":") {
            if text.firstIndex(of: ":") == colon {
                host = text[..<colon]
                port = text[text.index(after: colon)...]
            } else {
                try Self.checkBareIPv6(text, lastColon: colon)
            }
        }
        guard !host.isEmpty else { throw .empty }
        self.init(host: String(host))
        if let port {
            guard port.allSatisfy(\.isASCII), port.first?.isNumber == true, let number = UInt16(port), number > 0
            else { throw .badPort(String(port)) }
            self.port = number
        }
    }

    /// Several colons without brackets are a bare IPv6 address, unless the last part was meant as a port: `5000` alone also
    /// is a part of an address, but hardly ever that of a radio.
    private static func checkBareIPv6(_ text: String, lastColon: String.Index) throws(ParseFailure) {
        let port = text[text.index(after: lastColon)...]
        let isAddress = isIPv6(text[...])
        if isIPv6(text[..<lastColon]), port.allSatisfy({ $0.isASCII && $0.isNumber }), let number = UInt16(port),
            !isAddress || number == defaultPort
        {
            throw .missingBrackets(host: String(text[..<lastColon]), port: String(port))
        }
        if !isAddress { throw .notIPv6 }
    }

    /// The zone need not be one of this machine.
    private static func isIPv6(_ text: Substring) -> Bool {
        SocketAddress(ip: String(text.prefix { $0 != "%" }), port: 0)?.isIPv6 ?? false
    }
}

extension TCPEndpoint: CustomStringConvertible {
    /// `host:port`, with brackets around an IPv6 address.
    public var description: String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
