// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshConfig
internal import MeshCrypto
internal import MeshTransportAPI

/// What is secret, and what shows a share to be itself.
extension StartExamination {
    private static let openSSLAdvice = "install OpenSSL 3 (libssl3)"

    // MARK: Secrets

    mutating func examineToken(_ token: ShareTokenConfig, _ requirement: ConfigRequirement) {
        let reference = token.secret
        if noteUnseen(reference, "secret", requirement) { return }
        do throws(MeshError) {
            _ = try token.resolvedSecret(SecretSource(environment: environment))
        } catch {
            let advice = isMissing(reference).map { "make it: (umask 077; openssl rand -hex 32 > \($0))" }
            find(
                .secretUnusable, "secret", requirement, error.message, advice: advice ?? self.advice(on: error),
                isPermission: error.code == .permissionDenied)
        }
        do throws(CryptoError) {
            // Its clients prove that they know it.
            _ = try HMACSHA256.code(of: [0], key: [0])
        } catch {
            find(.secretUnusable, "secret", requirement, "\(error)", advice: Self.openSSLAdvice)
        }
    }

    mutating func examineOption(_ name: String, _ reference: SecretReference, _ requirement: ConfigRequirement) {
        if noteUnseen(reference, name, requirement) { return }
        do throws(MeshError) {
            _ = try reference.resolve(SecretSource(environment: environment))
        } catch {
            find(
                .secretUnusable, name, requirement, error.message, advice: "the device is not connected without it",
                isPermission: error.code == .permissionDenied)
        }
    }

    /// What a service gets from its unit is not here when somebody asks in a shell.
    private mutating func noteUnseen(
        _ reference: SecretReference, _ key: String, _ requirement: ConfigRequirement
    ) -> Bool {
        let reason: String
        switch reference {
        case .environment(let name) where environment[name] == nil: reason = "the environment variable \(name)"
        case .credential where environment["CREDENTIALS_DIRECTORY"] == nil: reason = "CREDENTIALS_DIRECTORY"
        case .environment, .credential, .file, .inline: return false
        }
        guard purpose == .check else { return false }
        find(
            .secretUnusable, key, requirement, "\(reason) is not set here", advice: "the service has to have it",
            verdict: .unseen)
        return true
    }

    /// The path of a file that is not there.
    private func isMissing(_ reference: SecretReference) -> String? {
        guard case .file(let path) = reference else { return nil }
        do throws(SystemError) {
            return try PathFacts(path) == nil ? path : nil
        } catch {
            return nil
        }
    }

    private func advice(on error: MeshError) -> String? {
        error.code == .permissionDenied ? "let uid \(geteuid()) read it" : nil
    }

    // MARK: Certificates

    mutating func examineTLS(_ tls: ShareTLSConfig, keyPosition: SourcePosition, _ requirement: ConfigRequirement) {
        let (certificateName, keyName) = ("tls_certificate", "tls_key")
        let certificate = pem(tls.certificate, of: certificateName, at: requirement.position, requirement)
        let key = pem(tls.key, of: keyName, isPrivate: true, at: keyPosition, requirement)
        guard let certificate, let key else { return }
        func refuseKey(_ error: TLSError, _ advice: String) {
            find(
                .certificateUnusable, keyName, requirement, at: keyPosition, "\(tls.key): \(error)", advice: advice)
        }
        func refuseCertificate(_ error: TLSError, _ advice: String) {
            find(.certificateUnusable, certificateName, requirement, "\(tls.certificate): \(error)", advice: advice)
        }
        do throws(TLSError) {
            _ = try TLSContext(serverCertificates: certificate, key: key)
        } catch {
            switch error {
            case .keyUnusable: refuseKey(error, "it has to be PEM, without a passphrase")
            case .keyOfAnotherCertificate: refuseKey(error, "name the key of \(tls.certificate)")
            case .certificateUnusable: refuseCertificate(error, "it has to be PEM, the server's own certificate first")
            default: refuseCertificate(error, Self.openSSLAdvice)
            }
        }
    }

    /// The file's text; nil after it was told why there is none.
    private mutating func pem(
        _ path: String, of key: String, isPrivate: Bool = false, at place: SourcePosition,
        _ requirement: ConfigRequirement
    ) -> [UInt8]? {
        do throws(MeshError) {
            return try PEMFile.read(path, isPrivate: isPrivate)
        } catch {
            find(
                .certificateUnusable, key, requirement, at: place, error.message, advice: advice(on: error),
                isPermission: error.code == .permissionDenied)
            return nil
        }
    }
}
