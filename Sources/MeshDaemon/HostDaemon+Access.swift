// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshConfig
internal import MeshSharing
internal import MeshTransportAPI

/// Tokens and certificates of shares: from files to what runs.
extension HostDaemon {
    /// The tokens of a share with their secrets.
    func tokens(of share: ShareConfig) throws(MeshError) -> [ShareToken] {
        let source = SecretSource(environment: ProcessInfo.processInfo.environment)
        var tokens: [ShareToken] = []
        for token in share.tokens {
            do throws(MeshError) {
                let secret = try token.resolvedSecret(source)
                tokens.append(ShareToken(name: token.name, role: ClientRole(token.role), secret: secret))
            } catch {
                throw MeshError(error.code, "share \(share.id): \(error.message)", cause: error)
            }
        }
        return tokens
    }

    /// What a share needs for TLS, if it has it.
    func tls(of share: ShareConfig) throws(MeshError) -> ShareTLS? {
        guard let tls = share.tls else { return nil }
        do throws(MeshError) {
            return ShareTLS(
                certificates: try PEMFile.read(tls.certificate), key: try PEMFile.read(tls.key, isPrivate: true))
        } catch {
            throw MeshError(error.code, "share \(share.id): \(error.message)", cause: error)
        }
    }

    /// Reads the files of an open share again: a secret or a certificate may have been renewed where it lies.
    func renewAccess(of share: ShareConfig) async throws(MeshError) {
        guard !share.tokens.isEmpty || share.tls != nil, let open = shares[share.id],
            let session = sessions[open.device]
        else { return }
        try await session.renewAccess(
            ofShare: open.number, tokens: try tokens(of: share), tls: try tls(of: share))
    }
}

extension ClientRole {
    /// The role of this name.
    init(_ role: ShareRole) {
        self =
            switch role {
            case .observe: .observe
            case .chat: .chat
            case .admin: .admin
            case .owner: .owner
            }
    }
}
