// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import MeshTransportAPI
import Testing

@Suite struct ValidConfigTests {
    private func sample() throws -> HostConfig {
        let reading = read(try Fixtures.text("Valid/sample.toml"))
        #expect(reading.report == "")
        return try #require(reading.config)
    }

    @Test func `the sample is read without a diagnostic`() throws {
        let config = try sample()
        #expect(config.daemon == DaemonConfig())
        #expect(config.linkDefaults == LinkConfig())
        #expect(config.devices.map(\.name) == ["roof", "garage", "shed", "pager"])
        #expect(
            config.shares.map(\.id) == [
                "roof 127.0.0.1:5000, [::1]:5000", "garage-lan", "roof /run/meshhost/roof.sock", "away",
            ])
    }

    @Test func `devices have their own values, and defaults for the rest`() throws {
        let config = try sample()
        var roof = DeviceConfig(name: "roof", module: "bluez")
        roof.adapter = "hci0"
        roof.options = ["address": .value("F8:5B:1B:A6:7E:25"), "pin": .secret(.credential("roof-pin"), .string)]
        roof.position = SourcePosition(source: "a.toml", line: 19, column: 1)
        #expect(config.devices[0] == roof)

        #expect(!config.devices[2].autoconnect)
        #expect(config.devices[3].deviceProtocol == .none)
        #expect(config.devices[3].modulePath == "/opt/acme/libmeshhost-acme-lora.so")
        #expect(config.devices[3].options == ["channel": .value(7), "name": .value("Pager 7")])
    }

    @Test func `a module's section says where it is and how it runs`() throws {
        let config = try #require(
            read(
                """
                [module.acme]
                isolation = "process"
                memory_mib = 0
                [module.udp]
                command = ["/opt/udp", "--fast"]
                sha256 = "9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08"
                """
            ).config)
        #expect(config.modules[0].isolation == .process)
        #expect(config.modules[0].memoryLimit == 0)
        #expect(config.modules[1].command == ["/opt/udp", "--fast"])
        let request = config.request(forModule: "udp")
        #expect(request.command == ["/opt/udp", "--fast"])
        #expect(request.isolation == nil)
        #expect(request.sha256 == "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
        #expect(config.modules[0].sha256 == nil)
        #expect(request.memoryLimit == 1_024)
        let shown = try #require(read(config.shownTOML()).config)
        #expect(ConfigDiff(from: config, to: shown).isEmpty)
        #expect(shown.modules.map(\.command) == config.modules.map(\.command))
        #expect(shown.modules.map(\.sha256) == config.modules.map(\.sha256))
    }

    @Test func `a device inherits the link settings it does not have`() throws {
        let link = try sample().devices[1].link
        #expect(link.connectTimeout == .seconds(3))
        #expect(link.backoffFirst == .milliseconds(250))
        #expect(link.backoffMaximum == .seconds(300))
        #expect(link.contentionBackoff == .seconds(300))
    }

    @Test func `defaults of a link hold for every device`() throws {
        let config = try #require(
            read(
                """
                [[device]]
                name = "a"
                module = "tcp"
                host = "x"
                link = { max_retries = 2 }
                [defaults.link]
                max_retries = 5
                stable_after = "1m"
                backoff.first = "1s"
                """
            ).config)
        #expect(config.devices[0].link.maximumRetries == 2)
        #expect(config.devices[0].link.stableAfter == .seconds(60))
        #expect(config.devices[0].link.backoffFirst == .seconds(1))
    }

    @Test func `a share has its own values, and defaults for the rest`() throws {
        let share = try sample().shares[1]
        #expect(share.listen == [.tcp(host: "0.0.0.0", port: 5001)])
        #expect(share.isInsecure)
        #expect(share.maximumClients == 4)
        #expect(share.queueFrames == 256)
        #expect(share.queueBytes == 65_536)
        #expect(share.stuckTimeout == .seconds(30))
        #expect(share.role == .chat)
        #expect(share.position == SourcePosition(source: "a.toml", line: 56, column: 1))
    }

    @Test func `the journal and the virtual companions have their own values`() throws {
        let config = try sample()
        #expect(config.journal.maximumMessages == 5000)
        #expect(config.journal.maximumAge == .seconds(30 * 86_400))
        #expect(config.journal.sync == .normal)
        #expect(config.devices[0].companion == CompanionConfig())
        #expect(config.devices[1].companion.sendWait == .zero)
        #expect(config.devices[1].companion.backlog == 100)
        #expect(config.devices[1].companion.setsClock)
        #expect(config.devices[1].companion.probeAfter == .seconds(30))
    }

    @Test func `an empty configuration is valid`() {
        #expect(read("").config == HostConfig())
        #expect(read().config == HostConfig())
    }

    @Test func `an optional device without its module is disabled with the reason`() throws {
        let reading = read(
            """
            [daemon]
            module_path = ["/opt/a", "/opt/b"]
            [[device]]
            name = "pager"
            module = "acme"
            optional = true
            key = "hunter2"
            """)
        let device = try #require(reading.config?.devices.first)
        #expect(device.disabledReason == "module \"acme\" is not available: searched /opt/a, /opt/b")
        #expect(!"\(device)".contains("hunter2"))
        #expect(reading.diagnostics.map(\.severity) == [.warning])
    }

    @Test func `a module is asked for once, with its path`() throws {
        nonisolated(unsafe) var requests: [ModuleRequest] = []
        let text = """
            [module.tcp]
            path = "/opt/tcp.so"
            [[device]]
            name = "a"
            module = "tcp"
            host = "x"
            [[device]]
            name = "b"
            module = "tcp"
            host = "y"
            """
        _ = HostConfig.reading(ConfigInput(texts: [ConfigText(path: "a.toml", text: text)])) { request in
            requests.append(request)
            return .found(SampleModule.tcp)
        }
        #expect(requests == [ModuleRequest(name: "tcp", path: "/opt/tcp.so")])
    }

    @Test func `JSON is read like TOML`() throws {
        let text = try Fixtures.text("Valid/sample.json")
        let reading = HostConfig.reading(
            ConfigInput(texts: [ConfigText(path: "x.json", text: text)]), modules: SampleModule.lookUp)
        let config = try #require(reading.config)
        #expect(config.daemon.logLevel == .debug)
        #expect(config.devices[0].options == ["host": .value("192.168.4.1"), "port": .value(5001)])
        #expect(config.devices[0].link.maximumRetries == 3)
        #expect(config.shares[0].listen == [.tcp(host: "127.0.0.1", port: 5000)])
    }

    @Test func `errors in JSON name the file alone`() {
        func report(_ text: String) -> String {
            HostConfig.reading(
                ConfigInput(texts: [ConfigText(path: "x.json", text: text)]), modules: SampleModule.lookUp
            ).diagnostics.rendered()
        }
        #expect(
            report(#"{"daemon": {"log_levle": "info"}}"#)
                == "x.json: error[C0102]: unknown key \"log_levle\" in [daemon]; did you mean \"log_level\"?\n")
        #expect(report(#"{"daemon": null}"#) == "x.json: error[C0101]: \"daemon\" takes a table, not null\n")
        #expect(report("[]").hasPrefix("x.json: error[C0002]: the file is no JSON object"))
        #expect(report("{").hasPrefix("x.json: error[C0002]: the file is not JSON"))
    }
}
