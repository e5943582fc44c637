// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension CommandTable {
    /// The daemon, its config and its modules.
    static let host: [CommandSyntax] = [
        CommandSyntax(
            words: ["run"], summary: "load modules, connect devices, serve clients",
            details: """
                Runs until SIGTERM or SIGINT; SIGHUP reloads. Log lines go to standard error.
                """,
            ownOptions: CommandOption.ofConfig,
            hints: [
                "--control": "say --set daemon.control_socket=PATH", "--quiet": "say --set daemon.log_level=error",
                "--json": "`meshhost listen` tells what happens as JSON",
            ],
            examples: ["run", "run --config my.toml --set daemon.log_level=debug"],
            make: { _ in .run }),
        CommandSyntax(
            words: ["check"], summary: "check the config without touching any device",
            details: """
                Tells all that is wrong at once, each with its place and what to write. Status 78 with an error.
                """,
            ownOptions: CommandOption.ofConfig + [.json, .quiet("nothing when all is right, but warnings")],
            examples: ["check", "check --config my.toml"],
            make: { _ in .check }),
        CommandSyntax(
            words: ["config", "show"], summary: "the config in force, secrets hidden",
            details: """
                What the files, the environment and --set come to, with all defaults. A secret shows as ${SECRET}.
                """,
            ownOptions: CommandOption.ofConfig + [.json],
            examples: ["config show", "config show --config my.toml --set device.roof.optional=true"],
            make: { _ in .configShow }),
        CommandSyntax(
            words: ["config", "schema"], summary: "every key it may have, with type, default and meaning",
            hints: ["--json": "it is text for people"],
            examples: ["config schema"],
            make: { _ in .configSchema }),
        CommandSyntax(
            words: ["modules"], operands: "[list]", operandCount: 0...1, offer: .words(["list"]),
            summary: "transport modules: found, loaded or refused, and why",
            details: """
                Those of the running daemon; without one, those that the config would load.
                """,
            ownOptions: CommandOption.ofDaemon + [.json],
            examples: ["modules"],
            make: modules),
        CommandSyntax(
            words: ["modules", "reset"], operands: "[NAME]", operandCount: 0...1,
            summary: "let modules be started again that crashed too often",
            details: """
                Without a name all of them. Their devices are connected at once.
                """,
            ownOptions: CommandOption.ofDaemon + [.json, .quiet("no output but errors")],
            examples: ["modules reset", "modules reset acme-lora"],
            make: { .modulesReset($0.operands.first) }),
        CommandSyntax(
            words: ["modules", "verify"], operands: "[NAME|FILE]...", operandCount: 0...(.max), offer: .files,
            summary: "whether they may be loaded, and their digests; loads nothing",
            details: """
                Without any, all that the config names and all that lie in the searched folders. Run it as the daemon's
                user: whose a file may be depends on who asks. Status 78 when one is refused.
                """,
            ownOptions: CommandOption.ofConfig + [.json, .quiet("what is refused alone")],
            hints: ["--control": "it asks no daemon"],
            examples: ["modules verify", "modules verify tcp ./meshhost-acme.so"],
            make: { .modulesVerify($0.operands) }),
        CommandSyntax(
            words: ["module-test"], operands: "MODULE.so|NAME | -- PROGRAM... | --device NAME",
            operandCount: 0...(.max), offer: .files, takesProgram: true,
            summary: "try a module against the rules of the module ABI and of transports",
            details: """
                MODULE.so|NAME is a library, -- PROGRAM... a program that speaks the protocol of modules, --device NAME
                what a configured device uses, with its options.

                Each rule is tried in a process of its own, so a crash breaks one rule. Rules that need a link are
                skipped without a device that can be connected; do not name one that is in use: frames are sent to it.

                Exit status: 0 no rule is broken, 69 some are, 64 usage, 78 the options are not acceptable.
                """,
            ownOptions: ModuleTestOptions.options,
            exclusive: [["--json", "--quiet"]],
            examples: [
                "module-test ./meshhost-acme.so --option port=/dev/ttyACM0 --peer echo",
                "module-test --option port=7 -- ./acme.py", "module-test --device roof -c my.toml",
            ],
            make: { words throws(UsageError) in .moduleTest(try ModuleTestOptions(words)) }),
        CommandSyntax(
            words: ["reload"], summary: "the daemon reads its config again and changes what is different",
            details: """
                The daemon reads the config that it was started with; --config and --set only say where its socket is.
                Status 78 when the config has errors and nothing was changed, 69 when some of it could not be applied.
                """,
            ownOptions: CommandOption.ofDaemon + [.json, .quiet("no output but errors")],
            examples: ["reload"],
            make: { _ in .reload }),
        CommandSyntax(
            words: ["doctor"], summary: "whether all that links need is there, and what to do if not",
            details: """
                Looks at the config, the daemon, the modules, what links go through, and the devices. Changes nothing.
                Status 69 when it finds a problem.
                """,
            ownOptions: CommandOption.ofDaemon + [.json, .quiet("problems only")],
            examples: ["doctor", "doctor --config my.toml"],
            make: { _ in .doctor }),
    ]

    private static func modules(_ words: CommandWords) throws(UsageError) -> HostCommand {
        guard let word = words.operands.first, word != "list" else { return .modules }
        throw UsageError.unknown(word, in: "modules", of: ["list", "reset", "verify"])
    }
}
