// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import MeshTransportAPI
import Testing

/// Tokens and TLS of a share.
@Suite struct ShareAccessTests {
    private let share = """
        [[device]]
        name = "roof"
        module = "tcp"
        host = "192.168.4.1"
        [[share]]
        name = "front-door"
        type = "companion-tcp"
        device = "roof"
        listen = "127.0.0.1:5000"

        """
    private let alice = "[[share.token]]\nname = \"alice\"\nrole = \"owner\"\nsecret = { file = \"/run/alice\" }\n"
    private let tls = "tls_certificate = \"/etc/cert.pem\"\ntls_key = \"/etc/key.pem\"\n"

    @Test func `a share has its tokens and its certificate`() throws {
        let config = try #require(
            read(share + tls + alice + "[[share.token]]\nname = \"bob\"\nsecret = { env = \"BOB\" }\n").config)
        var owner = ShareTokenConfig(name: "alice", secret: .file("/run/alice"))
        owner.role = .owner
        #expect(config.shares[0].tokens == [owner, ShareTokenConfig(name: "bob", secret: .environment("BOB"))])
        #expect(config.shares[0].tokens[1].role == .chat)
        #expect(config.shares[0].tls == ShareTLSConfig(certificate: "/etc/cert.pem", key: "/etc/key.pem"))
    }

    @Test func `a Unix socket may have tokens`() throws {
        let text = share.replacing("companion-tcp", with: "companion-unix")
            .replacing("127.0.0.1:5000", with: "/run/roof.sock")
        #expect(read(text + alice).report == "")
    }

    @Test func `a listener on the network needs tokens and TLS, or the word insecure`() {
        let wide = share.replacing("127.0.0.1", with: "0.0.0.0")
        func codes(_ text: String) -> [ConfigDiagnostic.Code] { read(text).diagnostics.map(\.code) }
        #expect(codes(wide + tls + alice) == [])
        #expect(codes(wide + alice) == [.listenerExposed])
        #expect(codes(wide + tls) == [.listenerExposed])
        #expect(codes(wide) == [.listenerExposed])
        for rest in [tls + "insecure = true\n" + alice, "insecure = true\n" + alice, tls + "insecure = true\n"] {
            #expect(codes(wide + rest) == [])
        }
    }

    @Test func `an empty list of tokens is none`() {
        let wide = share.replacing("127.0.0.1", with: "0.0.0.0")
        #expect(read(wide + tls + "token = []\n").diagnostics.map(\.code) == [.listenerExposed])
    }

    @Test func `a role beside tokens is warned about`() throws {
        let reading = read(share + "role = \"owner\"\n" + alice)
        #expect(reading.config != nil)
        #expect(reading.diagnostics.map(\.severity) == [.warning])
        #expect(reading.diagnostics.map(\.code) == [.contradiction])
    }

    @Test func `tokens meet by their name in a later layer`() throws {
        let later = """
            [[share]]
            name = "front-door"
            [[share.token]]
            name = "bob"
            secret = { env = "BOB" }
            [[share.token]]
            name = "alice"
            secret = { credential = "alice" }
            """
        let config = try #require(read(share + alice, later).config)
        #expect(config.shares[0].tokens.map(\.name) == ["alice", "bob"])
        #expect(config.shares[0].tokens[0].secret == .credential("alice"))
        #expect(config.shares[0].tokens[0].role == .owner)
    }

    @Test func `a token is addressed by name from outside`() throws {
        let config = try #require(
            read(
                share + alice,
                environment: [
                    "MESHHOST__SHARE__FRONT_DOOR__TOKEN__ALICE__ROLE": "observe",
                    "MESHHOST__SHARE__FRONT_DOOR__TOKEN__BOB__SECRET": "from the environment",
                ], settings: ["share.front-door.token.alice.secret.env=ALICE"]
            ).config)
        #expect(config.shares[0].tokens.map(\.name) == ["alice", "bob"])
        #expect(config.shares[0].tokens[0].role == .observe)
        #expect(config.shares[0].tokens[0].secret == .environment("ALICE"))
        #expect(config.shares[0].tokens[1].secret == .inline(SecretText("from the environment")))
    }

    @Test func `overrides of tokens that name no key are errors`() {
        #expect(
            read(
                share + alice,
                settings: [
                    "share.front-door.token=x", "share.front-door.token.alice=x", "share.front-door.token.alice.name=x",
                    "share.front-door.token.alice.secret=hunter2hunter2hunter2",
                ]
            ).report == """
                --set share.front-door.token: error[C0109]: it names no key of one token; write the name of the token \
                and a key
                --set share.front-door.token.alice: error[C0109]: it names no key of one token; write the name of the \
                token and a key
                --set share.front-door.token.alice.name: error[C0109]: a name cannot be set
                --set share.front-door.token.alice.secret: warning[C0301]: everyone on this host can see the secret \
                "secret" among the arguments in [[share.token]] "alice" of [[share]] "front-door"; set the environment \
                variable MESHHOST__SHARE__FRONT_DOOR__TOKEN__ALICE__SECRET, or secret.file

                """)
    }

    @Test func `a secret is read when it is needed, and has 16 characters or more`() throws {
        let source = SecretSource(environment: ["A": "0123456789abcdef", "B": "0123456789abcde"])
        #expect(try ShareTokenConfig(name: "a", secret: .environment("A")).resolvedSecret(source) == "0123456789abcdef")
        let short = #expect(throws: MeshError.self) {
            try ShareTokenConfig(name: "b", secret: .environment("B")).resolvedSecret(source)
        }
        #expect(short?.code == .configurationInvalid)
        #expect(short?.message == "token \"b\": its secret has 15 characters; 16 are the least")
        let missing = #expect(throws: MeshError.self) {
            try ShareTokenConfig(name: "c", secret: .environment("C")).resolvedSecret(source)
        }
        #expect(missing?.message == "token \"c\": the environment variable C is not set")
    }

    @Test func `a token's secret shows in no output`() throws {
        let reading = read(share + "[[share.token]]\nname = \"alice\"\nsecret = \"hunter2hunter2hunter2\"\n")
        let config = try #require(reading.config)
        var dumped = ""
        dump(config, to: &dumped)
        for output in [
            reading.diagnostics.rendered(), config.shownTOML(), config.shownJSON().text(), "\(config)",
            String(reflecting: config), dumped,
        ] {
            #expect(!output.contains("hunter"))
        }
        #expect(reading.diagnostics.map(\.code) == [.secretInline])
    }
}

extension String {
    fileprivate func replacing(_ text: String, with other: String) -> String {
        split(separator: text, omittingEmptySubsequences: false).joined(separator: other)
    }
}
