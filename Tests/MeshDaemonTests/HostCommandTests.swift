// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import MeshDaemon

struct HostCommandTests {
    static func parse(_ line: String) throws -> (HostCommand, HostOptions) {
        let (command, options) = try HostCommand.parse(line.split(separator: " ").map(String.init))
        return (command, options)
    }

    @Test(arguments: [
        ("run", HostCommand.run), ("check", .check), ("config show", .configShow), ("config schema", .configSchema),
        ("modules", .modules), ("modules list", .modules), ("status", .status), ("devices", .devices),
        ("clients", .clients),
        ("device roof", .device(name: "roof", .status)), ("device roof status", .device(name: "roof", .status)),
        ("device roof connect", .device(name: "roof", .connect)),
        ("device roof disconnect", .device(name: "roof", .disconnect)),
        ("device roof reconnect", .device(name: "roof", .reconnect)),
        ("device roof release", .device(name: "roof", .release(for: nil))),
        ("device roof release --for 10m", .device(name: "roof", .release(for: .seconds(600)))),
        ("modules verify", .modulesVerify([])), ("modules verify acme ./a.so", .modulesVerify(["acme", "./a.so"])),
        ("modules reset", .modulesReset(nil)), ("modules reset acme-lora", .modulesReset("acme-lora")),
        ("scan", .scan(.init())), ("doctor", .doctor),
        ("scan --for 3s --module bluez --jsonl", .scan(.init(module: "bluez", time: .seconds(3), isLines: true))),
        ("pair roof", .pair(.init(target: "roof"))),
        ("unpair C0:11:22:33:44:55", .unpair(.init(target: "C0:11:22:33:44:55"))),
        (
            "pair C0:11:22:33:44:55 --pin 123456 --module=bluez --adapter hci1",
            .pair(.init(target: "C0:11:22:33:44:55", module: "bluez", adapter: "hci1", pin: "123456"))
        ), ("pair roof --pin -", .pair(.init(target: "roof", pin: "-"))),
        ("decode companion 16 03", .decode(.companion, hex: "1603", .init())),
        ("decode frame 1603", .decode(.companion, hex: "1603", .init())),
        ("decode lpp 016700ff", .decode(.lpp, hex: "016700ff", .init())),
        ("decode hci 01 030c00", .decodeBluetooth(.hci, hex: "01030c00", .init())),
        ("decode smp 06 --secrets", .decodeBluetooth(.smp, hex: "06", .init(showsSecrets: true))),
        ("decode btsnoop a.log --jsonl", .decodeRecording(path: "a.log", .init(isLines: true))),
        (
            "decode packet 1500 --channel #bot --channel=x=00",
            .decode(.packet, hex: "1500", .init(channels: ["#bot", "x=00"]))
        ),
        (
            "decode companion 8c00 --request 3200 --secrets",
            .decode(.companion, hex: "8c00", .init(request: "3200", showsSecrets: true))
        ),
        (
            "encode companion {\"name\":\"GET_CONTACTS\"}",
            .encode(.companion, json: "{\"name\":\"GET_CONTACTS\"}")
        ), ("encode packet {}", .encode(.packet, json: "{}")), ("encode lpp []", .encode(.lpp, json: "[]")),
        (
            "bridge --to roof.example:5001 --listen 127.0.0.1:5000",
            .bridge(
                .init(
                    remote: .init(host: "roof.example", port: 5001), listen: .tcp(.init(host: "127.0.0.1", port: 5000)))
            )
        ),
        (
            "bridge --listen=/run/user/1000/roof.sock --tls --to=[2001:db8::1]:5001 --token alice --secret-file /home/a/alice",
            .bridge(
                .init(
                    remote: .init(host: "2001:db8::1", port: 5001), listen: .unix(path: "/run/user/1000/roof.sock"),
                    trust: .system, token: .init(name: "alice", secretFile: "/home/a/alice")))
        ),
        (
            "bridge --to a:1 --listen [::1]:2 --ca roof.pem",
            .bridge(
                .init(
                    remote: .init(host: "a", port: 1), listen: .tcp(.init(host: "::1", port: 2)),
                    trust: .authorities(file: "roof.pem")))
        ),
        (
            "bridge --to a:1 --listen /b --tls --pin 00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:"
                + "f0:f1:f2:f3:f4:f5:f6:f7:f8:f9:fa:fb:fc:fd:fe:ff",
            .bridge(
                .init(
                    remote: .init(host: "a", port: 1), listen: .unix(path: "/b"),
                    trust: .pinned(Array(0...15) + Array(0xF0...0xFF))))
        ),
        ("hci info hci1", .controllerInfo("hci1")), ("hci info tcp:[::1]:9", .controllerInfo("tcp:[::1]:9")),
        ("version", .version), ("--version", .version),
        ("help", .help(.program)), ("", .help(.program)), ("run --help", .help(.command(["run"]))),
        ("--help decode", .help(.family("decode"))), ("help decode hci", .help(.command(["decode", "hci"]))),
        ("device roof connect -h", .help(.command(["device"]))), ("modules --help", .help(.command(["modules"]))),
        ("completion zsh", .completion(.zsh)), ("reload", .reload),
        ("decode btsnoop -- --odd", .decodeRecording(path: "--odd", .init())),
        ("listen --count 18446744073709551615", .listen(.init(count: .max))),
        (
            "listen roof --type link,advert --type client --since 7 --count 3",
            .listen(.init(device: "roof", types: ["link", "advert", "client"], since: 7, count: 3))
        ),
    ])
    func `a command is read`(_ line: String, _ command: HostCommand) throws {
        #expect(try Self.parse(line).0 == command)
    }

    @Test func `options stand anywhere, and name=value is the same as name value`() throws {
        let (command, options) = try Self.parse(
            "--json reload -c a.toml --config=b.toml --set daemon.log_level=debug --control /run/x.sock")
        #expect(command == .reload)
        #expect(
            options
                == HostOptions(
                    configFiles: ["a.toml", "b.toml"], assignments: ["daemon.log_level=debug"],
                    controlSocket: "/run/x.sock", isJSON: true))
        #expect(try Self.parse("-q reload").1.isQuiet)
    }

    @Test(arguments: [
        ("chek", "unknown command \"chek\"; did you mean check?"), ("zebra", "unknown command \"zebra\""),
        ("sacn", "unknown command \"sacn\"; did you mean scan?"), ("help fly", "unknown command \"fly\""),
        ("fly --help", "unknown command \"fly\""),
        ("--json", "no command is named; it may stand before its options or behind them"),
        ("check --jsno", "check has no --jsno; did you mean --json?"),
        ("--jsno check", "check has no --jsno; did you mean --json?"), ("--wings", "unknown option --wings"),
        ("--contrl", "unknown option --contrl; did you mean --control?"),
        ("check --json=yes", "--json takes no value"),
        ("run now", "run: unexpected word \"now\"; say `meshhost run`"),
        ("run --config", "--config needs a value: --config FILE"),
        ("check --config --json", "--config needs a value: --config FILE"),
        ("run --config=", "--config has an empty value; write --config FILE"),
        ("devices --control a --control b", "--control stands twice; devices takes one"),
        ("devices -q", "devices has no --quiet; it has --control, --config, --set, --json, --help"),
        ("config schema --json", "config schema has no --json: it is text for people; it has --help"),
        (
            "run --control x",
            "run has no --control: say --set daemon.control_socket=PATH; it has --config, --set, --help"
        ),
        (
            "clients --type link",
            "clients has no --type, which goes with listen; it has --control, --config, --set, --json, --help"
        ),
        (
            "devices --for 10m",
            "devices has no --for, which goes with device and scan; it has --control, --config, --set, --json, --help"
        ), ("check --json -q", "--json and --quiet exclude each other"),
        ("scan --json --jsonl", "--json and --jsonl exclude each other"),
        ("device roof conect", "device roof: unknown word \"conect\"; did you mean connect?"),
        (
            "device roof fly",
            "device roof: unknown word \"fly\"; say one of status, connect, disconnect, release, reconnect"
        ), ("device roof -q", "device roof status has no --quiet: it would show nothing"),
        ("device roof connect --for 1m", "device roof connect has no --for, which goes with release"),
        ("device roof release --for soon", "--for soon: not a duration; write for example 10m"),
        ("device", "device: say `meshhost device NAME [status|connect|disconnect|release|reconnect]`"),
        ("hci", "hci: say `meshhost hci info CONTROLLER`"),
        ("hci infos hci1", "hci: say `meshhost hci info CONTROLLER`"),
        ("listen --since soon", "--since soon: not a number; write a whole one from 0"),
        ("listen --type=", "--type has an empty value; write --type TYPE[,TYPE]..."),
        ("listen --type link,", "--type: a type is empty; write types or families, such as link,advert"),
        ("config", "config: say `meshhost config show` or `meshhost config schema`"),
        ("modules rset", "modules: unknown word \"rset\"; did you mean reset?"),
        ("decode packets 00", "decode: unknown word \"packets\"; did you mean packet?"),
        ("decode", "decode: say `meshhost decode companion|packet|lpp|hci|att|smp|btsnoop`"),
        ("decode packet", "decode packet: say `meshhost decode packet HEX...`"),
        ("decode btsnoop a b", "decode btsnoop: unexpected word \"b\"; say `meshhost decode btsnoop FILE`"),
        (
            "decode btsnoop a --json",
            "decode btsnoop has no --json: a recording may be of any size; say --jsonl; it has --jsonl, --secrets, --help"
        ), ("encode 00", "encode: unknown word \"00\"; say one of companion, packet, lpp"),
        ("bridge", "bridge: say `meshhost bridge --to HOST:PORT --listen HOST:PORT|PATH`"),
        ("bridge --to a:1", "bridge: say `meshhost bridge --to HOST:PORT --listen HOST:PORT|PATH`"),
        ("bridge --to a --listen /b", "--to a: write HOST:PORT, and an IPv6 address as [::1]:PORT"),
        ("bridge --to ::1:5000 --listen /b", "--to ::1:5000: write HOST:PORT, and an IPv6 address as [::1]:PORT"),
        ("bridge --to a:70000 --listen /b", "--to a:70000: write HOST:PORT, and an IPv6 address as [::1]:PORT"),
        ("bridge --to a:1 --listen b", "--listen b: write HOST:PORT, and an IPv6 address as [::1]:PORT"),
        ("bridge --to a:1 --listen /b --token x", "--token needs --secret-file"),
        ("bridge --to a:1 --listen /b --secret-file /x", "--secret-file needs --token"),
        ("bridge --to a:1 --listen /b --ca x --pin y", "--ca and --pin exclude each other"),
        (
            "bridge --to a:1 --listen /b --pin 0g", "--pin 0g: write the certificate's SHA-256, 64 hexadecimal digits"
        ), ("scan --for 0s", "--for 0ms: a scan takes 1s to 1h"),
        ("pair", "pair: say `meshhost pair DEVICE|ADDRESS`"),
        ("pair roof --pin 12345x", "--pin: a PIN has 1 to 16 digits; write - to read it from standard input"),
        ("completion tcsh", "completion: unknown word \"tcsh\"; say one of bash, zsh, fish"),
    ])
    func `a mistake is named, with what to type`(_ line: String, _ message: String) {
        let error = #expect(throws: UsageError.self) { try Self.parse(line) }
        #expect(error?.message == message)
    }
}
