// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop

/// Where a controller is.
enum HCIPort: Sendable, Hashable {
    /// A Unix socket that speaks H4 (Core Specification 5.4, Vol 4 Part A).
    case unix(path: String)
    /// The same over TCP.
    case tcp(host: String, port: UInt16)
    /// An adapter of this machine, taken from bluetoothd: `hciN`.
    case adapter(index: UInt16)
    /// A serial port that speaks H4.
    case serial(SerialLine)

    /// Reads `hciN`, `unix:PATH`, `tcp:HOST:PORT` with an IPv6 address in brackets, and `h4:PATH`, `h4:PATH@BAUD` and
    /// `h4:PATH@BAUD,rtscts` for a serial port. Nil for anything else.
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
        case "h4":
            guard let line = SerialLine(h4: rest) else { return nil }
            self = .serial(line)
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
        case .serial(let line): "h4:\(line.path)@\(line.baud)\(line.hardwareFlowControl ? ",rtscts" : "")"
        }
    }
}

extension HCIPort {
    /// For people who have written something else.
    static let examples = "hci1, h4:/dev/ttyACM0@115200, unix:/run/hci0 or tcp:127.0.0.1:9000"

    /// The same for the name of a file: whatever is no letter or digit is a hyphen.
    var fileName: String {
        String(description.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" })
    }

    /// An adapter of this machine, which others may use, too.
    var isAdapter: Bool {
        if case .adapter = self { true } else { false }
    }
}

extension SerialLine {
    /// `PATH[@BAUD[,rtscts]]`, with 115200 baud and no flow control by default. A path begins with `/`. Both lines stay on: a
    /// dongle with a USB port of its own sends only then, a UART has no DTR.
    fileprivate init?(h4 text: Substring) {
        guard text.hasPrefix("/") else { return nil }
        guard let at = text.lastIndex(of: "@") else {
            self.init(path: String(text))
            return
        }
        let options = text[text.index(after: at)...].split(separator: ",", omittingEmptySubsequences: false)
        guard let first = options.first, first.allSatisfy(\.isNumber), let baud = UInt32(first), baud > 0,
            options.count == 1 || options.dropFirst() == ["rtscts"]
        else { return nil }
        self.init(path: String(text[..<at]), baud: baud, hardwareFlowControl: options.count == 2)
    }
}
