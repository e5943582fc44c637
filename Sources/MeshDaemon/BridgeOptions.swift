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

/// The words of `meshhost bridge` as they are met.
struct BridgeWords {
    private var values: [String: String] = [:]
    private var wantsTLS = false
    private var met: [String] = []
    /// The first that was met; such words go with no other command.
    var first: String? { met.first }

    static let withValue = ["--to", "--listen", "--ca", "--pin", "--token", "--secret-file"]
    static let names = withValue + ["--tls"]

    /// Takes a word that is one of ``names``; `value` reads the next one.
    mutating func take(_ word: String, value: () throws(UsageError) -> String) throws(UsageError) {
        met.append(word)
        guard word != "--tls" else { return wantsTLS = true }
        values[word] = try value()
    }

    /// `--pin` also is a word of `pair`: takes it away, for that.
    mutating func removePin() -> String? {
        met.removeAll { $0 == "--pin" }
        return values.removeValue(forKey: "--pin")
    }

    /// All of them together.
    func options() throws(UsageError) -> BridgeOptions {
        guard let to = values["--to"], let listen = values["--listen"] else {
            throw UsageError(message: "bridge: say `bridge --to HOST:PORT --listen HOST:PORT|PATH`")
        }
        return BridgeOptions(
            remote: try Self.endpoint(to, of: "--to"), listen: try Self.listen(listen), trust: try trust(),
            token: try token())
    }

    private func trust() throws(UsageError) -> BridgeOptions.Trust? {
        switch (values["--ca"], values["--pin"]) {
        case (nil, nil): return wantsTLS ? .system : nil
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

    private func token() throws(UsageError) -> BridgeOptions.Token? {
        switch (values["--token"], values["--secret-file"]) {
        case (nil, nil): return nil
        case (let name?, let file?):
            guard !name.isEmpty, name.utf8.count <= 64 else {
                throw UsageError(message: "--token \(name): write the name of a [[share.token]]")
            }
            return BridgeOptions.Token(name: name, secretFile: file)
        case (_?, nil): throw UsageError(message: "--token needs --secret-file")
        case (nil, _?): throw UsageError(message: "--secret-file needs --token")
        }
    }

    private static func listen(_ text: String) throws(UsageError) -> BridgeOptions.Listen {
        if text.hasPrefix("/") {
            // unix(7): `sun_path` with its final NUL.
            guard text.utf8.count <= 107 else {
                throw UsageError(message: "--listen \(text): the path of a socket has at most 107 bytes")
            }
            return .unix(path: text)
        }
        return .tcp(try endpoint(text, of: "--listen"))
    }

    private static func endpoint(_ text: String, of option: String) throws(UsageError) -> BridgeOptions.Endpoint {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        var host = parts.dropLast().joined(separator: ":")
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        if isBracketed { host = String(host.dropFirst().dropLast()) }
        guard !host.isEmpty, isBracketed == host.contains(":"), let port = parts.last.flatMap({ UInt16($0) }) else {
            throw UsageError(message: "\(option) \(text): write HOST:PORT, and an IPv6 address as [::1]:PORT")
        }
        return BridgeOptions.Endpoint(host: host, port: port)
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
