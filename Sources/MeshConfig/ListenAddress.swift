// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc

/// Where a share listens.
public enum ListenAddress: Sendable, Hashable {
    /// A host name or an address (IPv6 without brackets), and a port; port 0 lets the system choose one.
    case tcp(host: String, port: UInt16)
    case unix(path: String)
}

extension ListenAddress: CustomStringConvertible {
    /// As a configuration has it.
    public var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): path
        }
    }
}

extension ListenAddress {
    /// Reads `host:port` or `[IPv6 address]:port`.
    init(tcp text: String) throws(Complaint) {
        func refusal(_ hint: String) -> Complaint { .notAllowed("listen", text, hint: hint) }

        if text.hasPrefix("/") {
            throw refusal(
                "a share of type \"companion-tcp\" listens on \"host:port\"; a path needs type \"companion-unix\"")
        }
        if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            throw refusal("a port alone is not enough: write \"127.0.0.1:\(text)\" for clients on this host")
        }
        if !text.hasPrefix("["), IPAddress(text)?.isIPv6 == true {
            // `::1:5000` is a whole address as well as `::1` and a port; nobody means the former.
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            let address = parts.dropLast().joined(separator: ":")
            if IPAddress(address) != nil, let port = parts.last, UInt16(port) != nil {
                throw refusal("an IPv6 address needs brackets: write \"[\(address)]:\(port)\"")
            }
            throw refusal("the port is missing: write \"[\(text)]:5000\"")
        }
        guard let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") else {
            throw refusal("the port is missing: write \"\(text.isEmpty ? "127.0.0.1" : text):5000\"")
        }
        let before = text[..<colon]
        let after = text[text.index(after: colon)...]
        guard !after.isEmpty else {
            throw refusal("the port is missing: write \"\(before):5000\"")
        }
        guard let port = UInt16(after), after.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw refusal("\"\(after)\" is no port: a port is a number from 1 to 65535, or 0 to let the system choose")
        }
        guard !before.isEmpty, before != "*" else {
            throw refusal(
                "the host is missing: write \"127.0.0.1:\(port)\" for clients on this host, "
                    + "\"0.0.0.0:\(port)\" for the whole network")
        }
        self = .tcp(host: try Self.host(before, of: text, port: port), port: port)
    }

    private static func host(_ host: Substring, of text: String, port: UInt16) throws(Complaint) -> String {
        func refusal(_ hint: String) -> Complaint { .notAllowed("listen", text, hint: hint) }

        if host.hasPrefix("[") || host.hasSuffix("]") {
            let inner = String(host.dropFirst().dropLast())
            guard host.hasPrefix("["), host.hasSuffix("]"), IPAddress(inner)?.isIPv6 == true else {
                throw refusal("an IPv6 address stands in brackets: \"[::1]:\(port)\"")
            }
            return inner
        }
        if host.contains(":") {
            throw refusal("an IPv6 address needs brackets: write \"[\(host)]:\(port)\"")
        }
        if host.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }) {
            guard IPAddress(String(host)) != nil else {
                throw refusal("\"\(host)\" is no IPv4 address")
            }
            return String(host)
        }
        let isName = host.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x61...0x7A).contains($0 | 0x20) || $0 == UInt8(ascii: "-")
                || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_")
        }
        guard isName, host.utf8.count <= 253 else {
            throw refusal("\"\(host)\" is no host name")
        }
        return host.lowercased()
    }

    /// Reads an absolute path that fits into a socket address.
    init(unix text: String) throws(Complaint) {
        func refusal(_ hint: String) -> Complaint { .notAllowed("listen", text, hint: hint) }

        guard text.hasPrefix("/") else {
            let hint =
                text.contains(":")
                ? "a share of type \"companion-unix\" listens on an absolute path; an address needs type \"companion-tcp\""
                : "write an absolute path, such as \"/run/meshhost/roof.sock\""
            throw refusal(hint)
        }
        // `sun_path` holds 108 bytes with the final NUL.
        guard text.utf8.count <= 107, !text.utf8.contains(0) else {
            throw refusal("the path of a socket has at most 107 bytes")
        }
        self = .unix(path: text)
    }
}

extension ListenAddress {
    /// Whether only programs on this host reach it.
    public var isLocal: Bool {
        switch self {
        case .unix: true
        case .tcp("localhost", _): true
        case .tcp(let host, _): IPAddress(host)?.isLoopback ?? false
        }
    }

    /// Whether both cannot be listened on at once.
    func conflicts(with other: ListenAddress) -> Bool {
        switch (self, other) {
        case (.unix(let path), .unix(let otherPath)):
            return path == otherPath
        case (.tcp(let host, let port), .tcp(let otherHost, let otherPort)):
            guard port == otherPort, port != 0 else { return false }
            // `localhost` is both loopback addresses.
            if host == "localhost", otherHost != "localhost" {
                return ["127.0.0.1", "::1"].contains {
                    Self.tcp(host: $0, port: port).conflicts(with: other)
                }
            }
            if otherHost == "localhost", host != "localhost" { return other.conflicts(with: self) }
            guard let address = IPAddress(host), let otherAddress = IPAddress(otherHost) else {
                return host == otherHost
            }
            let isCovered = address.isUnspecified || otherAddress.isUnspecified
            return address == otherAddress || isCovered && address.isIPv6 == otherAddress.isIPv6
        case (.unix, .tcp), (.tcp, .unix):
            return false
        }
    }
}

/// The bytes of an IPv4 or IPv6 address, so that one address written in two ways is one.
private struct IPAddress: Equatable {
    private var bytes: [UInt8]
    private var zone = ""

    init?(_ text: String) {
        var v4 = in_addr()
        if inet_pton(AF_INET, text, &v4) == 1 {
            bytes = withUnsafeBytes(of: v4) { Array($0) }
            return
        }
        // `inet_pton` knows no zones, as in fe80::1%eth0.
        let parts = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        var v6 = in6_addr()
        guard inet_pton(AF_INET6, String(parts[0]), &v6) == 1 else { return nil }
        bytes = withUnsafeBytes(of: v6) { Array($0) }
        if parts.count == 2 {
            guard !parts[1].isEmpty else { return nil }
            zone = String(parts[1])
        }
    }

    var isIPv6: Bool { bytes.count == 16 }
    var isUnspecified: Bool { bytes.allSatisfy { $0 == 0 } }
    var isLoopback: Bool { isIPv6 ? bytes == Array(repeating: 0, count: 15) + [1] : bytes[0] == 127 }
}
