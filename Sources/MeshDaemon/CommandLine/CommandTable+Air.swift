// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

extension CommandTable {
    /// What is around, keys for it, and the share of another host.
    static let air: [CommandSyntax] = [
        CommandSyntax(
            words: ["scan"], summary: "devices that can be heard",
            details: """
                Through the running daemon, whose links are not disturbed; without one with the modules themselves.
                """,
            ownOptions: [
                CommandOption(name: "--for", value: "TIME", help: "how long, 1s to 1h; 10s unless it is said"),
                CommandOption(
                    name: "--module", value: "NAME", help: "this module alone, such as bluez, hci or serial"),
            ] + CommandOption.ofDaemon + [
                .json, .lines, .quiet("a table at the end, on a terminal too"),
            ],
            hints: ["--adapter": "a module looks through the adapters of its configured devices"],
            examples: ["scan", "scan --module serial", "scan --for 1m --jsonl"],
            make: scan),
        CommandSyntax(
            words: ["pair"], operands: "DEVICE|ADDRESS", operandCount: 1...1,
            summary: "pair with a device, so that links to it need nobody",
            details: """
                A configured device by its name or address, or any by its address. Without --pin the PIN is that of
                the config, or MESHHOST_PIN.
                """,
            ownOptions: [
                CommandOption(
                    name: "--pin", value: "PIN",
                    help: "its digits, which other users see meanwhile; - reads them from standard input"),
                CommandOption(
                    name: "--module", value: "NAME", help: "of a device that is not configured; bluez unless it is said"
                ),
                CommandOption(name: "--adapter", value: "NAME", help: "through this adapter or controller"),
            ] + CommandOption.ofDaemon + [.json, .quiet("no output but errors")],
            examples: ["pair roof", "pair C0:11:22:33:44:55 --pin - < roof.pin"],
            make: { words throws(UsageError) in .pair(try HostCommand.PairOptions(words)) }),
        CommandSyntax(
            words: ["unpair"], operands: "DEVICE|ADDRESS", operandCount: 1...1,
            summary: "forget a device's keys",
            details: """
                Its link is ended first, and made anew if it is wanted: `meshhost device NAME disconnect` prevents that.
                """,
            ownOptions: [
                CommandOption(
                    name: "--module", value: "NAME", help: "of a device that is not configured; bluez unless it is said"
                ),
                CommandOption(name: "--adapter", value: "NAME", help: "through this adapter or controller"),
            ] + CommandOption.ofDaemon + [.json, .quiet("no output but errors")],
            hints: ["--pin": "keys are forgotten without it"],
            examples: ["unpair roof", "unpair C0:11:22:33:44:55 --adapter hci1"],
            make: { words throws(UsageError) in .unpair(try HostCommand.PairOptions(words)) }),
        CommandSyntax(
            words: ["hci", "info"], operands: "CONTROLLER", operandCount: 1...1,
            summary: "what a controller of the module hci is and can do",
            details: """
                CONTROLLER is an adapter that is switched off, such as hci1, or unix:PATH or tcp:HOST:PORT.
                """,
            ownOptions: CommandOption.ofDaemon + [.json],
            examples: ["hci info hci1", "hci info unix:/run/hci0 --json"],
            make: { .controllerInfo($0.operands[0]) }),
        CommandSyntax(
            words: ["bridge"], operands: "--to HOST:PORT --listen HOST:PORT|PATH",
            summary: "local programs reach a share of another host",
            details: """
                Runs until SIGTERM or SIGINT. Without --tls, --ca and --pin nothing is encrypted.
                """,
            ownOptions: BridgeOptions.options + [
                CommandOption(name: "--json", help: "what happens, as JSON lines"),
                .quiet("on standard error nothing but errors"),
            ],
            exclusive: [["--ca", "--pin"]],
            hints: ["--config": "all it needs is on the command line", "--set": "all it needs is on the command line"],
            examples: [
                "bridge --to roof.example:5001 --listen 127.0.0.1:5000",
                "bridge --to roof.example:5001 --listen /run/user/1000/roof.sock --ca roof.pem --token alice "
                    + "--secret-file alice.secret",
            ],
            make: { words throws(UsageError) in .bridge(try BridgeOptions(words)) }),
    ]

    private static func scan(_ words: CommandWords) throws(UsageError) -> HostCommand {
        var options = HostCommand.ScanOptions(module: words["--module"], isLines: words.has("--jsonl"))
        if let time = try words.duration("--for", such: "30s") {
            guard ScanLimits.time.contains(time) else {
                throw UsageError(message: "--for \(time.optionText): a scan takes 1s to 1h")
            }
            options.time = time
        }
        return .scan(options)
    }
}

extension HostCommand.PairOptions {
    fileprivate init(_ words: CommandWords) throws(UsageError) {
        let pin = words["--pin"]
        if let pin, pin != "-" { _ = try Self.checked(pin: pin) }
        self.init(target: words.operands[0], module: words["--module"], adapter: words["--adapter"], pin: pin)
    }

    /// A PIN of up to 16 digits: what any radio may have. The module knows better what its own take.
    static func checked(pin: String) throws(UsageError) -> String {
        guard (1...16).contains(pin.utf8.count), pin.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains)
        else {
            // Not with the value: it is a secret.
            throw UsageError(message: "--pin: a PIN has 1 to 16 digits; write - to read it from standard input")
        }
        return pin
    }
}

/// How long a scan may take.
enum ScanLimits {
    static let time: ClosedRange<Duration> = .seconds(1) ... .seconds(3_600)
}
