// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import MeshTransportAPI
import Testing

@Suite struct ShownConfigTests {
    @Test func `what is shown reads as the same configuration`() throws {
        let config = try #require(read(try Fixtures.text("Valid/sample.toml")).config)
        let again = read(config.shownTOML())
        #expect(again.report == "")
        #expect(ConfigDiff(from: config, to: try #require(again.config)).isEmpty)
        #expect(again.config?.shownTOML() == config.shownTOML())
        #expect(again.config?.devices[2].autoconnect == false)
    }

    @Test func `all values are shown, with references and without secrets`() throws {
        let text = """
            [module.acme-lora]
            path = "/opt/acme.so"
            [[device]]
            name = "roof"
            module = "bluez"
            address = "F8:5B:1B:A6:7E:25"
            pin = { credential = "roof-pin" }
            adapter = "hci0"
            [[device]]
            name = "gone"
            module = "acme"
            optional = true
            key = "hunter2"
            [[share]]
            type = "companion-tcp"
            device = "roof"
            listen = ["127.0.0.1:5000", "[::1]:5000"]
            [[share]]
            name = "away"
            type = "companion-tcp"
            device = "roof"
            listen = "0.0.0.0:5001"
            tls_certificate = "/etc/meshhost/cert.pem"
            tls_key = "/etc/meshhost/key.pem"
            [[share.token]]
            name = "alice"
            role = "admin"
            secret = { credential = "alice" }
            [[share.token]]
            name = "bob"
            secret = "hunter2hunter2hunter2"
            """
        let config = try #require(read(text).config)
        if Fixtures.isRecording {
            try Fixtures.write(config.shownTOML(), to: "Valid/shown.toml")
        }
        #expect(config.shownTOML() == (try Fixtures.text("Valid/shown.toml")))
        let json = config.shownJSON()
        #expect(json["defaults"]?["link"]?["backoff"] == ["first": "250ms", "max": "30s"])
        #expect(json["device"]?.arrayValue?[0]["options"]?["pin"] == ["credential": "roof-pin"])
        #expect(json["device"]?.arrayValue?[1]["options"]?["key"] == "<redacted>")
        #expect(json["journal"] == ["max_messages": 100_000, "max_age": "30d", "sync": "full"])
        #expect(
            json["share"]?.arrayValue?[1]["token"] == [
                ["name": "alice", "role": "admin", "secret": ["credential": "alice"]],
                ["name": "bob", "role": "chat", "secret": "<redacted>"],
            ])
        #expect(json["share"]?.arrayValue?[0]["listen"] == ["127.0.0.1:5000", "[::1]:5000"])
        #expect(json["module"]?["acme-lora"]?["path"] == "/opt/acme.so")
    }
}
