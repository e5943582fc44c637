// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// Where a secret is. Nothing here shows its value.
public enum SecretReference: Sendable, Hashable {
    /// The content of a file that others must not be able to read.
    case file(String)
    /// The value of an environment variable.
    case environment(String)
    /// A file in the folder that systemd names in `CREDENTIALS_DIRECTORY`.
    case credential(String)
    /// The value itself.
    case inline(SecretText)
}

/// A text that is never shown.
public struct SecretText: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The text. For the code that needs it, not for messages.
    public let revealed: String

    public init(_ text: String) {
        self.revealed = text
    }

    /// What is shown in its place.
    public static let placeholder = "<redacted>"

    public var description: String { Self.placeholder }
    public var debugDescription: String { Self.placeholder }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// What secrets are read from, beside files.
public struct SecretSource: Sendable {
    public var environment: [String: String]

    public init(environment: [String: String]) {
        self.environment = environment
    }

    var credentialsDirectory: String? { environment["CREDENTIALS_DIRECTORY"] }
}

extension SecretReference {
    /// The keys of the table that a reference is in a configuration.
    static let kinds = ["file", "env", "credential"]

    /// Longer files hold something else than a secret.
    private static var maximumLength: Int { 65_536 }

    /// Reads the secret; one line end at the end of a file is not part of it.
    ///
    /// Throws ``MeshError/Code-swift.struct/permissionDenied`` for a file that this user may not read and
    /// ``MeshError/Code-swift.struct/configurationInvalid`` for everything else: one that others can read, for one.
    public func resolve(_ source: SecretSource) throws(MeshError) -> String {
        switch self {
        case .inline(let text):
            return text.revealed
        case .environment(let name):
            guard let value = source.environment[name] else {
                throw MeshError(.configurationInvalid, "the environment variable \(name) is not set")
            }
            return value
        case .credential(let name):
            guard let folder = source.credentialsDirectory else {
                throw MeshError(
                    .configurationInvalid,
                    "there is no credential \"\(name)\": CREDENTIALS_DIRECTORY is not set; add "
                        + "LoadCredential=\(name):PATH to the service")
            }
            return try Self.read("\(folder)/\(name)", mustBePrivate: false)
        case .file(let path):
            return try Self.read(path, mustBePrivate: true)
        }
    }

    private static func read(_ path: String, mustBePrivate: Bool) throws(MeshError) -> String {
        let file: BoundedFile
        do throws(BoundedFile.Problem) {
            file = try BoundedFile(path: path, maximumLength: maximumLength)
        } catch {
            throw MeshError(error.code, "\(path) \(error.description)", cause: error)
        }
        if mustBePrivate, file.isReadableByOthers {
            throw MeshError(.configurationInvalid, "\(path) can be read by everyone; run: chmod o-rwx \(path)")
        }
        guard var text = String(validating: file.bytes, as: UTF8.self) else {
            throw MeshError(.configurationInvalid, "\(path) is not UTF-8 text")
        }
        // A CR LF is one character.
        if text.last?.isNewline == true {
            text.removeLast()
        }
        return text
    }
}
