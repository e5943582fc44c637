// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Where a controller is.
enum HCIPort: Sendable, Hashable {
    /// A Unix socket that speaks H4 (Core Specification 5.4, Vol 4 Part A).
    case unix(path: String)
    /// The same over TCP.
    case tcp(host: String, port: UInt16)
    /// An adapter of this machine, taken from bluetoothd: `hciN`.
    case adapter(index: UInt16)

    /// Reads `hciN`, `unix:PATH` and `tcp:HOST:PORT`; an IPv6 address stands in brackets. Nil for anything else.
    init?(_ text: String) {
        guard let colon = text.firstIndex(of: ":") else {
            guard text.hasPrefix("hci"), let index = UInt16(text.dropFirst(3)), index < .max, text == "hci\(index)"
            else { return nil }
            self = .adapter(index: index)
            return
        }
        let rest = text[text.index(after: colon)...]
        switch text[..<colon] {
        case "unix":
            if rest.isEmpty { return nil }
            self = .unix(path: String(rest))
        case "tcp":
            guard let last = rest.lastIndex(of: ":"), let port = UInt16(rest[rest.index(after: last)...]), port > 0
            else { return nil }
            var host = rest[..<last]
            if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
            if host.isEmpty { return nil }
            self = .tcp(host: String(host), port: port)
        default: return nil
        }
    }
}

extension HCIPort: CustomStringConvertible {
    /// As it is read.
    var description: String {
        switch self {
        case .unix(let path): "unix:\(path)"
        case .tcp(let host, let port): host.contains(":") ? "tcp:[\(host)]:\(port)" : "tcp:\(host):\(port)"
        case .adapter(let index): "hci\(index)"
        }
    }
}

extension HCIPort {
    /// For people who have written something else.
    static let examples = "hci1, unix:/run/hci0 or tcp:127.0.0.1:9000"

    /// The same for the name of a file: whatever is no letter or digit is a hyphen.
    var fileName: String {
        String(description.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" })
    }
}
