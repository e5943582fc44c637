// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshConfig
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshDaemon

struct StartExaminationTests {
    private let place = SourcePosition(source: "a.toml", line: 3, column: 7)

    private func findings(
        _ things: ConfigRequirement.Thing..., purpose: StartExamination.Purpose = .start,
        environment: [String: String] = [:]
    ) -> [StartFinding] {
        let requirements = things.map { ConfigRequirement($0, at: place, in: nil) }
        return StartExamination(purpose, of: requirements, environment: environment).findings
    }

    private func texts(_ findings: [StartFinding]) -> [String] {
        findings.map { "\($0.diagnostic.severity) \($0.diagnostic.message): \($0.diagnostic.hint ?? "")" }
    }

    private func token(_ reference: SecretReference) -> ConfigRequirement.Thing {
        .token(ShareTokenConfig(name: "alice", secret: reference))
    }

    // MARK: Secrets

    @Test func `a secret that is there and private is fine`() throws {
        let scratch = try Scratch()
        let path = try scratch.file("alice", "0123456789abcdef\n")
        #expect(findings(token(.file(path)), .option("pin", .file(path))).isEmpty)
        #expect(findings(token(.environment("A")), environment: ["A": "0123456789abcdef"]).isEmpty)
    }

    @Test func `every secret that cannot be used is told, with what to try`() throws {
        let scratch = try Scratch()
        let open = try scratch.file("open", "0123456789abcdef", mode: 0o644)
        let short = try scratch.file("short", "123")
        let missing = "\(scratch.path)/missing"
        let found = findings(token(.file(missing)), token(.file(open)), token(.file(short)), token(.environment("A")))
        #expect(
            texts(found) == [
                "error \"secret\" cannot be used: token \"alice\": \(missing) does not exist; "
                    + "make it: (umask 077; openssl rand -hex 32 > \(missing))",
                "error \"secret\" cannot be used: token \"alice\": \(open) can be read by everyone; "
                    + "run: chmod o-rwx \(open)",
                "error \"secret\" cannot be used: token \"alice\": its secret has 3 characters; 16 are the least",
                "error \"secret\" cannot be used: token \"alice\": the environment variable A is not set",
            ])
        #expect(found.allSatisfy { $0.diagnostic.position == place && $0.diagnostic.code == .secretUnusable })
        #expect(found.status == .configuration)
    }

    @Test func `the secret of a device does not keep the host from starting`() throws {
        let found = findings(.option("pin", .file("/nowhere/pin")))
        #expect(
            texts(found) == [
                "warning \"pin\" cannot be used: /nowhere/pin does not exist; the device is not connected without it"
            ])
        #expect(found.status == nil)
    }

    @Test func `what only the service has is not missed when somebody asks in a shell`() {
        let things: [ConfigRequirement.Thing] = [
            token(.environment("A")), token(.credential("alice")), .option("pin", .environment("B")),
        ]
        for thing in things {
            let asked = findings(thing, purpose: .check)
            #expect(asked.map(\.diagnostic.severity) == [.warning])
            #expect(asked.first?.diagnostic.message.contains("was not looked at") == true)
        }
        #expect(findings(things[0]).status == .configuration)
        #expect(findings(things[1]).status == .configuration)
        // The folder is there, and the credential is not in it.
        #expect(
            findings(things[1], purpose: .check, environment: ["CREDENTIALS_DIRECTORY": "/nowhere"]).status
                == .configuration)
    }

    // MARK: Certificates

    @Test func `certificate and key are judged together, each told where it stands`() throws {
        let scratch = try Scratch()
        let certificate = try scratch.file("cert.pem", Certificates.server, mode: 0o644)
        let key = try scratch.file("key.pem", Certificates.serverKey)
        let nonsense = try scratch.file("nonsense.pem", "nonsense")
        let keyPlace = SourcePosition(source: "a.toml", line: 9, column: 1)
        func places(_ certificate: String, _ key: String) -> [Int] {
            let tls = ShareTLSConfig(certificate: certificate, key: key)
            return findings(.certificate(tls, keyPosition: keyPlace)).map(\.diagnostic.position.line)
        }
        #expect(places(certificate, key) == [])
        #expect(places(nonsense, key) == [3])
        #expect(places(certificate, nonsense) == [9])
        #expect(places("/nowhere/cert.pem", "/nowhere/key.pem") == [3, 9])
        try #require(chmod(key, 0o644) == 0)
        #expect(places(certificate, key) == [9])
    }

    // MARK: Folders

    @Test func `a socket needs its folder, and no other file in its place`() throws {
        let scratch = try Scratch()
        let file = try scratch.file("file")
        func told(_ path: String) -> [String] { texts(findings(.listener(.unix(path: path)))) }
        #expect(told("\(scratch.path)/roof.sock") == [])
        #expect(
            told("\(scratch.path)/none/roof.sock") == [
                "error \"listen\" cannot be used: the folder \(scratch.path)/none does not exist; "
                    + "make it, or choose another path"
            ])
        #expect(
            told(file) == [
                "error \"listen\" cannot be used: \(file) is a file that is no socket; "
                    + "move it away, or choose another path"
            ])
        // A file on the way is no folder, whatever is asked for below it.
        #expect(told("\(file)/roof.sock").count == 1)
    }

    @Test func `sockets may lie in the state folder, which is made first`() throws {
        let scratch = try Scratch()
        let state = "\(scratch.path)/a/b"
        #expect(
            findings(
                .stateFolder(state), .controlSocket("\(state)/control.sock"),
                .listener(.unix(path: "\(scratch.path)/a/roof.sock"))
            ).isEmpty)
        #expect(findings(.stateFolder(state), .controlSocket("\(state)/c/control.sock")).status == .configuration)
        #expect(try scratch.contents == [])
    }

    @Test func `the folder that systemd makes for the service is missed by a start alone`() throws {
        // Where such a service runs there is nothing to be missed.
        guard try PathFacts("/run/meshhost") == nil else { return }
        #expect(findings(.controlSocket("/run/meshhost/control.sock"), purpose: .check).isEmpty)
        #expect(findings(.controlSocket("/run/meshhost/control.sock")).status == .configuration)
    }

    @Test func `the state folder and what is in it are looked at and left as they are`() throws {
        let scratch = try Scratch()
        let file = try scratch.file("file")
        let state = try scratch.folder("state")
        _ = try scratch.folder("state/journal.db")
        _ = try scratch.file("state/intents.json", "nonsense", mode: 0o644)
        let before = try scratch.contents
        #expect(
            texts(findings(.stateFolder(state)))
                == ["error \"state_dir\" cannot be used: \(state)/journal.db is not a file; move it away"])
        for path in [file, "\(file)/state"] { #expect(findings(.stateFolder(path)).status == .configuration) }
        #expect(findings(.stateFolder("\(scratch.path)/new/state")).isEmpty)
        #expect(try scratch.contents == before)
    }

    @Test func `a state folder is not made where everybody could replace it`() throws {
        let scratch = try Scratch()
        let open = try scratch.folder("open", mode: 0o777)
        #expect(findings(.stateFolder("\(open)/new/state")).map(\.diagnostic.code) == [.stateFolderUnusable])
    }

    // MARK: Status

    @Test func `the status is that of permission only if nothing else is wrong`() {
        func finding(_ severity: ConfigDiagnostic.Severity, isPermission: Bool) -> StartFinding {
            StartFinding(
                diagnostic: ConfigDiagnostic(severity, .secretUnusable, at: place, ""), isPermission: isPermission)
        }
        let (permission, other) = (finding(.error, isPermission: true), finding(.error, isPermission: false))
        #expect([permission].status == .permission)
        #expect([permission, other].status == .configuration)
        #expect([permission, finding(.warning, isPermission: false)].status == .permission)
        #expect([finding(.warning, isPermission: true)].status == nil)
        #expect([StartFinding]().status == nil)
    }

    @Test(
        arguments: [
            ([.resourceExhausted], .unavailable), ([.serviceUnavailable], .unavailable),
            ([.permissionDenied], .permission), ([.configurationInvalid], .configuration),
            ([.notSupported], .configuration), ([.storageFailed], .internalError),
            ([.resourceExhausted, .storageFailed], .unavailable),
            ([.resourceExhausted, .permissionDenied], .permission),
            ([.permissionDenied, .configurationInvalid, .internalError], .configuration),
        ] as [([MeshError.Code], MeshDaemon.ExitStatus)])
    func `of several failures the one that stays decides`(codes: [MeshError.Code], status: MeshDaemon.ExitStatus) {
        #expect(StartFailure(errors: codes.map { MeshError($0, "") }).status == status)
    }
}
