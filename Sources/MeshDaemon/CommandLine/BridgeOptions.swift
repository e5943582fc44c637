// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshCrypto
internal import MeshTransportAPI

/// What `meshhost bridge` is told.
struct BridgeOptions: Equatable {
    /// A host, a name or an address without brackets, and its port.
    struct Endpoint: Equatable {
        var host: String
        var port: UInt16
    }

    /// Where programs of this machine connect.
    enum Listen: Equatable {
        case tcp(Endpoint)
        case unix(path: String)
    }

    /// What the share's certificate must be.
    enum Trust: Equatable {
        /// Signed by an authority of the system.
        case system
        /// Signed by one in this file.
        case authorities(file: String)
        case pinned([UInt8])
    }

    struct Token: Equatable {
        var name: String
        var secretFile: String
    }

    var remote: Endpoint
    var listen: Listen
    /// Nil: no TLS.
    var trust: Trust?
    var token: Token?
}

extension BridgeOptions {
    static let options = [
        CommandOption(name: "--to", value: "HOST:PORT", help: "the share of the other host"),
        CommandOption(
            name: "--listen", value: "HOST:PORT|PATH", help: "where programs of this machine connect", offer: .files),
        CommandOption(name: "--tls", help: "with TLS; the certificate is one of the system's authorities"),
        CommandOption(
            name: "--ca", value: "FILE", help: "with TLS; the certificate is one of this file's", offer: .files),
        CommandOption(
            name: "--pin", value: "SHA256",
            help: "with TLS; the certificate is this one (openssl x509 -fingerprint -sha256)"
        ),
        CommandOption(name: "--token", value: "NAME", help: "the [[share.token]] to use; with --secret-file"),
        CommandOption(
            name: "--secret-file", value: "FILE", help: "the file that holds the token's secret", offer: .files),
    ]

    init(_ words: CommandWords) throws(UsageError) {
        guard let to = words["--to"], let listen = words["--listen"] else {
            throw UsageError(message: "bridge: say `meshhost bridge --to HOST:PORT --listen HOST:PORT|PATH`")
        }
        self.init(
            remote: try Self.endpoint(to, of: "--to"), listen: try Self.listen(listen), trust: try Self.trust(words),
            token: try Self.token(words))
    }

    private static func trust(_ words: CommandWords) throws(UsageError) -> Trust? {
        switch (words["--ca"], words["--pin"]) {
        case (nil, nil): return words.has("--tls") ? .system : nil
        case (let file?, nil): return .authorities(file: file)
        case (nil, let pin?):
            // As `openssl x509 -fingerprint -sha256` prints it, or without colons.
            let digits = pin.filter { $0 != ":" }
            guard digits.utf8.count == 2 * SHA256.byteCount, let bytes = [UInt8](hexadecimal: digits) else {
                throw UsageError(message: "--pin \(pin): write the certificate's SHA-256, 64 hexadecimal digits")
            }
            return .pinned(bytes)
        case (_?, _?): throw UsageError(message: "--ca and --pin exclude each other")
        }
    }

    private static func token(_ words: CommandWords) throws(UsageError) -> Token? {
        switch (words["--token"], words["--secret-file"]) {
        case (nil, nil): return nil
        case (let name?, let file?):
            guard !name.isEmpty, name.utf8.count <= 64 else {
                throw UsageError(message: "--token \(name): write the name of a [[share.token]]")
            }
            return Token(name: name, secretFile: file)
        case (_?, nil): throw UsageError(message: "--token needs --secret-file")
        case (nil, _?): throw UsageError(message: "--secret-file needs --token")
        }
    }

    private static func listen(_ text: String) throws(UsageError) -> Listen {
        if text.hasPrefix("/") {
            // unix(7): `sun_path` with its final NUL.
            guard text.utf8.count <= 107 else {
                throw UsageError(message: "--listen \(text): the path of a socket has at most 107 bytes")
            }
            return .unix(path: text)
        }
        return .tcp(try endpoint(text, of: "--listen"))
    }

    private static func endpoint(_ text: String, of option: String) throws(UsageError) -> Endpoint {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        var host = parts.dropLast().joined(separator: ":")
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        if isBracketed { host = String(host.dropFirst().dropLast()) }
        guard !host.isEmpty, isBracketed == host.contains(":"), let port = parts.last.flatMap({ UInt16($0) }) else {
            throw UsageError(message: "\(option) \(text): write HOST:PORT, and an IPv6 address as [::1]:PORT")
        }
        return Endpoint(host: host, port: port)
    }
}

extension [UInt8] {
    /// The bytes of an even number of hexadecimal digits.
    fileprivate init?(hexadecimal text: String) {
        let digits = text.compactMap(\.hexDigitValue)
        guard digits.count == text.count, digits.count.isMultiple(of: 2) else { return nil }
        self = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}
