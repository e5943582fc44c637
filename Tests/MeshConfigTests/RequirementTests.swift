// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import Testing

/// What a configuration relies on that lies outside of it.
@Suite struct RequirementTests {
    private let text = """
        [daemon]
        state_dir = "/srv/mesh"
        [[device]]
        name = "roof"
        module = "bluez"
        address = "F8:5B:1B:A6:7E:25"
        pin = { file = "/run/pin" }
        [[share]]
        name = "door"
        type = "companion-tcp"
        device = "roof"
        listen = ["127.0.0.1:5000", "[::1]:5000"]
        tls_certificate = "/run/cert.pem"
        tls_key = "/run/key.pem"
        [[share.token]]
        name = "alice"
        secret = { env = "ALICE" }
        [[share.token]]
        name = "bob"
        secret = "0123456789abcdef"
        """

    @Test func `everything that is named is listed with its place`() {
        let found = read(text).requirements
        let places = found.map { "\($0.position) \($0.section ?? "-")" }
        #expect(
            places == [
                "a.toml:2:13 [daemon]", "built-in default [daemon]", "a.toml:7:7 [[device]] \"roof\"",
                "a.toml:13:19 [[share]] \"door\"", "a.toml:17:10 [[share.token]] \"alice\" of [[share]] \"door\"",
                "a.toml:12:11 [[share]] \"door\"", "a.toml:12:29 [[share]] \"door\"",
            ])
        #expect(
            found.map(\.thing) == [
                .stateFolder("/srv/mesh"), .controlSocket("/run/meshhost/control.sock"),
                .option("pin", .file("/run/pin")),
                .certificate(
                    ShareTLSConfig(certificate: "/run/cert.pem", key: "/run/key.pem"),
                    keyPosition: SourcePosition(source: "a.toml", line: 14, column: 11)),
                .token(ShareTokenConfig(name: "alice", secret: .environment("ALICE"))),
                .listener(.tcp(host: "127.0.0.1", port: 5_000)), .listener(.tcp(host: "::1", port: 5_000)),
            ])
        #expect(found.filter { !$0.isNeededToStart }.map(\.thing) == [.option("pin", .file("/run/pin"))])
    }

    @Test func `they are listed in a broken config, too`() {
        let reading = read(text + "\n[[device]]\nname = \"attic\"\nmodule = \"nothing\"\nkey = { file = \"/x\" }\n")
        #expect(reading.config == nil)
        #expect(reading.requirements == read(text).requirements)
    }

    @Test func `what others find takes its place among the diagnostics`() {
        let reading = read("[daemon]\nlog_levl = 1\n[[device]]\nname = \"roof\"\npin = \"1\"\n")
        func finding(_ line: Int, _ text: String) -> ConfigDiagnostic {
            ConfigDiagnostic(
                .error, .secretUnusable, at: SourcePosition(source: "a.toml", line: line, column: 1), text)
        }
        let builtIn = ConfigDiagnostic(.error, .stateFolderUnusable, at: .builtIn, "last")
        let all = reading.diagnostics(and: [builtIn, finding(4, "second"), finding(1, "first")])
        #expect(all.map(\.position.line) == [1, 2, 3, 4, 0])
        #expect(all.map(\.sourceLine).first == "[daemon]")
        #expect(all.last?.rendered() == "built-in default: error[C0404]: last")
    }
}
