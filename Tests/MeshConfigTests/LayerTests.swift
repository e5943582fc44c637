// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import MeshTransportAPI
import Testing

@Suite struct LayerTests {
    private let roof = """
        [daemon]
        log_level = "info"
        state_dir = "/srv/a"
        [[device]]
        name = "roof"
        module = "tcp"
        host = "192.168.4.1"
        options.port = 5001
        link = { max_retries = 2, backoff = { first = "1s" } }
        """

    @Test func `a later file wins key by key`() throws {
        let config = try #require(read(roof, "[daemon]\nlog_level = \"debug\"").config)
        #expect(config.daemon.logLevel == .debug)
        #expect(config.daemon.stateDirectory == "/srv/a")
    }

    @Test func `devices meet by their name`() throws {
        let config = try #require(
            read(
                roof,
                """
                [[device]]
                name = "garage"
                module = "tcp"
                host = "192.168.4.2"
                [[device]]
                name = "roof"
                host = "10.0.0.1"
                link.backoff.max = "1m"
                """
            ).config)
        #expect(config.devices.map(\.name) == ["roof", "garage"])
        #expect(config.devices[0].options == ["host": .value("10.0.0.1"), "port": .value(5001)])
        #expect(config.devices[0].link.maximumRetries == 2)
        #expect(config.devices[0].link.backoffFirst == .seconds(1))
        #expect(config.devices[0].link.backoffMaximum == .seconds(60))
        #expect(config.devices[0].position.source == "a.toml")
    }

    @Test func `an option may be spelt below options in one layer and directly in the next`() throws {
        let config = try #require(read(roof, "[[device]]\nname = \"roof\"\nport = 5002").config)
        #expect(config.devices[0].options["port"] == .value(5002))
    }

    @Test func `a share without a name is added, one with a name is changed`() throws {
        let share =
            "[[share]]\nname = \"phone\"\ntype = \"companion-tcp\"\ndevice = \"roof\"\nlisten = \"localhost:5000\"\n"
        let config = try #require(
            read(
                roof, share,
                """
                [[share]]
                name = "phone"
                listen = ["127.0.0.1:6000"]
                [[share]]
                type = "companion-unix"
                device = "roof"
                listen = "/run/roof.sock"
                """
            ).config)
        #expect(
            config.shares.map(\.listen) == [[.tcp(host: "127.0.0.1", port: 6000)], [.unix(path: "/run/roof.sock")]])
    }

    @Test func `a later layer does not change the type of a key`() {
        #expect(
            read(roof, "[daemon]\nlog_level = 7\n[[device]]\nname = \"roof\"\nport = \"5002\"\nlink = \"10s\"").report
                == """
                b.toml:2:13: error[C0108]: "log_level" is a whole number here and was a text at a.toml:2:13 in [daemon]; \
                a later layer must keep the type
                b.toml:5:8: error[C0108]: "port" is a text here and was a whole number at a.toml:8:16 in \
                [[device]] "roof"; a later layer must keep the type
                b.toml:6:8: error[C0108]: "link" is a text here and was a table at a.toml:9:8 in [[device]] "roof"; \
                a later layer must keep the type

                """)
    }

    @Test func `errors in every layer are found at once and named by their file`() {
        #expect(
            read(
                roof, "[daemon]\nlog_levle = \"debug\"\nstate_dir = \"x\"",
                "[[device]]\nname = \"roof\"\nport = 0\n[[share]]\ntype = \"companion-unix\"\ndevice = \"rof\"\n"
                    + "listen = \"/run/x\""
            ).report == """
                b.toml:2:1: error[C0102]: unknown key "log_levle" in [daemon]; did you mean "log_level"?
                b.toml:3:13: error[C0104]: "state_dir" cannot be "x" in [daemon]; write an absolute path
                c.toml:3:8: error[C0206]: option "port": 0 is no port in [[device]] "roof"; 1 to 65535
                c.toml:6:10: error[C0202]: there is no device named "rof" in [[share]] #1; did you mean "roof"?

                """)
    }

    @Test func `one file with a syntax error does not make the others look wrong`() {
        let reading = read(
            "[[device]]\nname = \"roof\"\nmodule = tcp",
            "[[device]]\nname = \"roof\"\nport = 5002\n[[share]]\ntype = \"companion-tcp\"\ndevice = \"roof\"\n"
                + "listen = \"127.0.0.1:5000\"\nrole = \"chatt\"")
        #expect(
            reading.report == """
                a.toml:3:10: error[C0002]: this is no value; a text needs quotes: key = "value"
                b.toml:8:8: error[C0104]: "role" cannot be "chatt" in [[share]] #1; did you mean "chat"?

                """)
        #expect(reading.config == nil)
    }

    @Test func `the same name twice in a later file is an error`() {
        #expect(
            read(roof, "[[device]]\nname = \"roof\"\nport = 1\n[[device]]\nname = \"roof\"\nport = 2").report.contains(
                "b.toml:5:8: error[C0106]: there are two devices named \"roof\"; the other one is at b.toml:2:8"))
    }

    @Test func `a reference replaces a secret of a lower layer, whatever that was`() throws {
        let base = "[[device]]\nname = \"a\"\nmodule = \"tcp\"\nhost = \"x\"\npassword = "
        let later = "[[device]]\nname = \"a\"\npassword = { env = \"PASSWORD\" }"
        for old in ["\"inline\"", "{ file = \"/etc/x\" }"] {
            let config = try #require(read(base + old, later).config)
            #expect(config.devices[0].options["password"] == .secret(.environment("PASSWORD"), .string))
        }
    }

    @Test func `tables with keys like those of a reference are merged outside of options`() throws {
        let config = try #require(
            read("[module.acme-lora]\npath = \"/a.so\"", "[module.file]\npath = \"/b.so\"").config)
        #expect(config.modules.map(\.name) == ["acme-lora", "file"])
    }
}
