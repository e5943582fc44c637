// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import MeshTransportAPI
import Testing

@Suite struct DiffTests {
    private let base = """
        [[device]]
        name = "roof"
        module = "tcp"
        host = "192.168.4.1"
        [[device]]
        name = "garage"
        module = "tcp"
        host = "192.168.4.2"
        password = { env = "A" }
        [[share]]
        name = "phone"
        type = "companion-tcp"
        device = "roof"
        listen = "127.0.0.1:5000"
        [[share]]
        type = "companion-unix"
        device = "roof"
        listen = "/run/roof.sock"
        """

    private func diff(_ layer: String, from old: String? = nil) throws -> ConfigDiff {
        ConfigDiff(
            from: try #require(read(old ?? base).config), to: try #require(read(base, layer).config))
    }

    @Test func `nothing changed when only places in the files did`() throws {
        let moved = try #require(read("# a comment\n\n" + base).config)
        let diff = ConfigDiff(from: try #require(read(base).config), to: moved)
        #expect(diff.isEmpty)
    }

    @Test func `devices are added and removed`() throws {
        let more = "[[device]]\nname = \"shed\"\nmodule = \"serial\"\npath = \"/dev/ttyUSB0\""
        let added = try diff(more)
        #expect(added.devicesAdded == ["shed"])
        #expect(added.devicesRemoved.isEmpty && added.devicesChanged.isEmpty)

        let removed = ConfigDiff(
            from: try #require(read(base, more).config), to: try #require(read(base).config))
        #expect(removed.devicesRemoved == ["shed"])
        #expect(removed.devicesAdded.isEmpty && removed.devicesChanged.isEmpty)
    }

    @Test(arguments: [
        "host = \"10.0.0.1\"", "port = 1", "tls = true", "link.max_retries = 2", "link.backoff.first = \"1s\"",
        "password = { env = \"B\" }", "protocol = \"none\"",
    ])
    func `what touches the link changes a device`(line: String) throws {
        let diff = try diff("[[device]]\nname = \"garage\"\n\(line)")
        #expect(diff.devicesChanged == ["garage"])
        #expect(diff.devicesAdded.isEmpty && diff.devicesRemoved.isEmpty && diff.sharesChanged.isEmpty)
    }

    @Test func `how the host plays the radio changes without the link`() throws {
        let diff = try diff("[[device]]\nname = \"garage\"\ncompanion.send_wait = \"0s\"")
        #expect(diff.companionsChanged == ["garage"])
        #expect(diff.devicesChanged.isEmpty)
        #expect(!diff.isEmpty)
    }

    @Test func `what does not touch the link changes nothing`() throws {
        #expect(try diff("[[device]]\nname = \"garage\"\nautoconnect = false\noptional = true").isEmpty)
    }

    @Test func `a default of the link changes every device that inherits it`() throws {
        let layer = "[defaults.link]\nmax_retries = 3\n[[device]]\nname = \"roof\"\nlink.max_retries = 0"
        #expect(try diff(layer).devicesChanged == ["garage"])
    }

    @Test func `a path of a module changes its devices`() throws {
        #expect(try diff("[module.tcp]\npath = \"/opt/tcp.so\"").devicesChanged == ["roof", "garage"])
    }

    @Test func `shares are told apart by name, else by device and address`() throws {
        let changed = try diff("[[share]]\nname = \"phone\"\nlisten = \"127.0.0.1:6000\"")
        #expect(changed.sharesChanged == ["phone"])
        #expect(changed.sharesAdded.isEmpty && changed.sharesRemoved.isEmpty)

        let moved = ConfigDiff(
            from: try #require(read(base).config),
            to: try #require(read(base.split(separator: "/run/roof").joined(separator: "/run/other")).config))
        #expect(moved.sharesAdded == ["roof /run/other.sock"])
        #expect(moved.sharesRemoved == ["roof /run/roof.sock"])
        #expect(moved.devicesChanged.isEmpty)
    }

    @Test(arguments: [
        "rx_log = true", "echo = true", "airtime_percent = 0", "airtime_burst = \"5s\"",
        "tls_certificate = \"/a\"\ntls_key = \"/b\"", "token = [{ name = \"a\", secret = { env = \"A\" } }]",
    ])
    func `every key of a share changes it`(line: String) throws {
        #expect(try diff("[[share]]\nname = \"phone\"\n\(line)").sharesChanged == ["phone"])
    }

    @Test func `a token that moved in its file is the same`() throws {
        let token = "\n[[share.token]]\nname = \"a\"\nsecret = { env = \"A\" }\n"
        let old = try #require(read(base + token).config)
        #expect(ConfigDiff(from: old, to: try #require(read(base + "\n\n" + token).config)).isEmpty)
    }

    @Test func `shares on a port the system chooses are told apart by device and number`() throws {
        let share = "\n[[share]]\ntype = \"companion-tcp\"\ndevice = \"roof\"\nlisten = \"127.0.0.1:0\"\n"
        let two = try #require(read(base + share + share).config)
        let one = try #require(read(base + share).config)
        #expect(two.shares.suffix(2).map(\.id) == ["roof 127.0.0.1:0", "roof 127.0.0.1:0 #2"])
        #expect(ConfigDiff(from: two, to: one).sharesRemoved == ["roof 127.0.0.1:0 #2"])
    }

    @Test func `keys of the daemon are applied or wait for a restart`() throws {
        let diff = try diff(
            "[daemon]\nlog_level = \"debug\"\nstate_dir = \"/srv/a\"\ncontrol_socket = \"/run/a\"\n"
                + "module_path = [\"/opt\"]\n[journal]\nmax_messages = 100\nmax_age = \"1h\"\nsync = \"normal\"")
        #expect(diff.logLevel == .debug)
        #expect(
            diff.restartRequired == [
                "daemon.state_dir", "daemon.control_socket", "daemon.module_path", "journal.max_messages",
                "journal.max_age", "journal.sync",
            ])
        #expect(diff.devicesChanged.isEmpty)
    }
}
