// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import MeshTransportAPI
import Testing

@Suite struct OverrideTests {
    private let base = """
        [[device]]
        name = "front-door"
        module = "tcp"
        host = "192.168.4.1"
        [[share]]
        name = "phone"
        type = "companion-tcp"
        device = "front-door"
        listen = "127.0.0.1:5000"
        """

    @Test func `environment variables have the type of their key`() throws {
        let reading = read(
            base,
            environment: [
                "MESHHOST__DAEMON__LOG_LEVEL": "debug",
                "MESHHOST__DAEMON__MODULE_PATH": "/opt/a:/opt/b",
                "MESHHOST__DEFAULTS__LINK__BACKOFF__MAX": "1m",
                "MESHHOST__DEFAULTS__LINK__MAX_RETRIES": "7",
                "MESHHOST__DEVICE__FRONT_DOOR__AUTOCONNECT": "false",
                "MESHHOST__DEVICE__FRONT_DOOR__PORT": "5001",
                "MESHHOST__DEVICE__FRONT_DOOR__OPTIONS__TLS": "true",
                "MESHHOST__SHARE__PHONE__LISTEN": "127.0.0.1:6000, [::1]:6000",
                "MESHHOST_LOG": "not for us", "PATH": "/bin",
            ])
        #expect(reading.report == "")
        let config = try #require(reading.config)
        #expect(config.daemon.logLevel == .debug)
        #expect(config.daemon.modulePath == ["/opt/a", "/opt/b"])
        #expect(config.linkDefaults.backoffMaximum == .seconds(60))
        #expect(config.devices.count == 1)
        #expect(config.devices[0].link.maximumRetries == 7)
        #expect(!config.devices[0].autoconnect)
        #expect(config.devices[0].options["port"] == .value(5001))
        #expect(config.devices[0].options["tls"] == .value(true))
        #expect(
            config.shares[0].listen == [.tcp(host: "127.0.0.1", port: 6000), .tcp(host: "::1", port: 6000)])
    }

    @Test(arguments: [
        ("[\"/opt/a\", '/opt/b:c']", ["/opt/a", "/opt/b:c"]), ("/opt/a:/opt/b", ["/opt/a", "/opt/b"]),
        ("[ \"/opt/a\" ]", ["/opt/a"]), ("/opt/a", ["/opt/a"]), ("[]", []), ("", []),
    ])
    func `a list is written as in a file, or folders with colons`(text: String, paths: [String]) throws {
        let reading = read(
            "[daemon]\nmodule_path = [\"/opt/x\"]", settings: ["daemon.module_path=\(text)"])
        #expect(reading.report == "")
        #expect(reading.config?.daemon.modulePath == paths)
    }

    @Test func `a command is a list or a program alone, addresses a list or with commas`() throws {
        let settings = [
            #"module.tcp.command=["/usr/bin/env", "python3", "a b"]"#,
            #"share.phone.listen=["127.0.0.1:6000", "[::1]:6000"]"#,
        ]
        let config = try #require(read(base, settings: settings).config)
        #expect(config.modules.first { $0.name == "tcp" }?.command == ["/usr/bin/env", "python3", "a b"])
        #expect(
            config.shares[0].listen == [.tcp(host: "127.0.0.1", port: 6000), .tcp(host: "::1", port: 6000)])
        let alone = try #require(
            read(base, settings: ["module.tcp.command=/opt/a b", "share.phone.listen=[::1]:6000"]).config)
        #expect(alone.modules.first { $0.name == "tcp" }?.command == ["/opt/a b"])
        #expect(alone.shares[0].listen == [.tcp(host: "::1", port: 6000)])
    }

    @Test func `what begins as a list and is none says how to write one`() {
        #expect(
            read(
                base,
                settings: [
                    #"daemon.module_path=["/opt/a""#, #"module.tcp.command=["/a"] x"#,
                    "share.phone.listen=[\"127.0.0.1:1\"]\nb = [\"c\"]",
                ]
            ).report
                == #"""
                --set daemon.module_path: error[C0104]: "module_path" cannot be "[\"/opt/a\"" in [daemon]; write a list \
                as in a file: ["…", "…"], in a shell between single quotes
                --set module.tcp.command: error[C0104]: "command" cannot be "[\"/a\"] x" in [module.tcp]; write a list \
                as in a file: ["…", "…"], in a shell between single quotes
                --set share.phone.listen: error[C0104]: "listen" cannot be "[\"127.0.0.1:1\"]\nb = [\"c\"]" in [[share]] \
                "phone"; write a list as in a file: ["…", "…"], in a shell between single quotes

                """#.replacing("\\\n", with: ""))
    }

    @Test func `arguments win over the environment, later ones over earlier ones`() throws {
        let config = try #require(
            read(
                "[daemon]\nlog_level = \"error\"", environment: ["MESHHOST__DAEMON__LOG_LEVEL": "notice"],
                settings: ["daemon.log_level=info", "daemon.log_level=debug"]
            ).config)
        #expect(config.daemon.logLevel == .debug)
    }

    @Test(arguments: [
        #"asd3hj2U\c"#, #"a"b"c"#, "$HOME ${PATH} $(id)", "a#b = [c]", "a=b=c", "", " padded ", "'''", "ü\n\t\u{1}",
        "true",
        "123456", "10s", "{ file = \"/x\" }", "a,b:c",
    ])
    func `a password is taken character by character`(password: String) throws {
        let byVariable = try #require(
            read(base, environment: ["MESHHOST__DEVICE__FRONT_DOOR__PASSWORD": password]).config)
        #expect(byVariable.devices[0].options["password"] == .secret(.inline(SecretText(password)), .string))

        let byArgument = try #require(read(base, settings: ["device.front-door.password=\(password)"]).config)
        #expect(byArgument.devices[0].options["password"] == .secret(.inline(SecretText(password)), .string))

        let host = try #require(read(base, settings: ["device.front-door.host=\(password)"]).config)
        #expect(host.devices[0].options["host"] == .value(.string(password)))
    }

    @Test func `a secret among the arguments is warned about, one in the environment is not`() {
        #expect(read(base, environment: ["MESHHOST__DEVICE__FRONT_DOOR__PASSWORD": "x"]).report == "")
        #expect(
            read(base, settings: ["device.front-door.password=hunter2"]).report == """
                --set device.front-door.password: warning[C0301]: everyone on this host can see the secret \
                "password" among the arguments in [[device]] "front-door"; set the environment variable \
                MESHHOST__DEVICE__FRONT_DOOR__PASSWORD, or password.file

                """)
    }

    @Test func `a reference can be set from outside`() throws {
        let config = try #require(
            read(base, settings: ["device.front-door.password.file=/run/secrets/door"]).config)
        #expect(config.devices[0].options["password"] == .secret(.file("/run/secrets/door"), .string))
    }

    @Test func `a device can be made from the environment alone`() throws {
        let config = try #require(
            read(
                environment: [
                    "MESHHOST__DEVICE__ROOF__MODULE": "tcp", "MESHHOST__DEVICE__ROOF__HOST": "192.168.4.1",
                    "MESHHOST__SHARE__PHONE__TYPE": "companion-tcp", "MESHHOST__SHARE__PHONE__DEVICE": "roof",
                    "MESHHOST__SHARE__PHONE__LISTEN": "127.0.0.1:5000",
                ]
            ).config)
        #expect(config.devices.map(\.name) == ["roof"])
        #expect(config.shares.map(\.name) == ["phone"])
    }

    @Test func `a module with a dash is found by a variable`() throws {
        let config = try #require(
            read(
                "[[device]]\nname = \"a\"\nmodule = \"acme-lora\"",
                environment: ["MESHHOST__MODULE__ACME_LORA__PATH": "/opt/acme.so"]
            ).config)
        #expect(config.devices[0].modulePath == "/opt/acme.so")
    }

    @Test func `errors name the variable or the argument`() {
        #expect(
            read(
                base,
                environment: [
                    "MESHHOST__DAEMON__LOG_LEVL": "debug", "MESHHOST__DEVICE__FRONT_DOOR__PORT": "many",
                    "MESHHOST__DEFAULTS__LINK__MAX_RETRIES": "-1",
                ],
                settings: ["daemon.log_level=loud", "device.front-door.optional=yes", "daemon.state_dir=x"]
            ).report == """
                environment variable MESHHOST__DAEMON__LOG_LEVL: error[C0102]: unknown key "log_levl" in [daemon]; \
                did you mean "log_level"?
                environment variable MESHHOST__DEFAULTS__LINK__MAX_RETRIES: error[C0105]: "max_retries" cannot be -1 \
                in [defaults.link]; allowed are 0 to 1000000
                environment variable MESHHOST__DEVICE__FRONT_DOOR__PORT: error[C0206]: option "port": "many" is not \
                a whole number in [[device]] "front-door"; for example 5000
                --set daemon.log_level: error[C0104]: "log_level" cannot be "loud" in [daemon]; allowed are "error", \
                "warning", "notice", "info", "debug"
                --set device.front-door.optional: error[C0104]: "optional" cannot be "yes" in \
                [[device]] "front-door"; write true or false
                --set daemon.state_dir: error[C0104]: "state_dir" cannot be "x" in [daemon]; write an absolute path

                """)
    }

    @Test func `overrides that name no key are errors`() {
        #expect(
            read(
                base, environment: ["MESHHOST__": "1", "MESHHOST__DAEMON": "x", "MESHHOST__DEVICE__FRONT_DOOR": "x"],
                settings: ["log_level", "=x", "device.front-door.name=y", "device=x", "module.acme=x", "a..b=1"]
            ).report == """
                environment variable MESHHOST__: error[C0109]: it names no key
                environment variable MESHHOST__DAEMON: error[C0101]: "daemon" takes a table, not a text
                environment variable MESHHOST__DEVICE__FRONT_DOOR: error[C0109]: it names no key of one device; \
                write the name of the device and a key
                --set log_level: error[C0109]: there is no "=" in this argument; write --set section.key=value
                --set : error[C0109]: it names no key
                --set device.front-door.name: error[C0109]: a name cannot be set
                --set device: error[C0109]: it names no key of one device; write the name of the device and a key
                --set module.acme: error[C0109]: it names no key of one module; write the name of the module and a key
                --set a..b: error[C0109]: it names no key

                """)
    }

    @Test func `a slip in the name of a device is told from a new device`() {
        #expect(
            read(base, settings: ["device.frontdoor.port=1"]).report.contains(
                "--set device.frontdoor.port: error[C0103]: \"module\" is missing in [[device]] \"frontdoor\"; "
                    + "no [[device]] is named \"frontdoor\"; did you mean \"front-door\"?"))
    }

    @Test func `a variable that could mean two devices is refused`() {
        let two =
            base + "\n[[device]]\nname = \"a-b\"\nmodule = \"tcp\"\nhost = \"x\"\n[[device]]\nname = \"a_b\"\n"
            + "module = \"tcp\"\nhost = \"x\""
        #expect(read(two, environment: ["MESHHOST__DEVICE__A_B__PORT": "1"]).report == "")
        let three =
            two.split(separator: "a_b").joined(separator: "a-b-c")
            + "\n[[device]]\nname = \"a_b-c\"\nmodule = \"tcp\"\nhost = \"x\""
        #expect(
            read(three, environment: ["MESHHOST__DEVICE__A_B_C__PORT": "1"]).report
                == "environment variable MESHHOST__DEVICE__A_B_C__PORT: error[C0109]: it could mean \"a-b-c\" or "
                + "\"a_b-c\"; use --set\n")
    }

    @Test func `a section is not overridden by a text`() {
        #expect(
            read("[daemon]\nlog_level = \"info\"", settings: ["daemon=x"]).report
                == "--set daemon: error[C0108]: \"daemon\" is a text here and was a table at a.toml:1:1; "
                + "a later layer must keep the type\n")
    }
}
