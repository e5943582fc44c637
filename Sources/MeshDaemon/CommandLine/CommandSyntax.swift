// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How a command is written, and what the help says of it.
struct CommandSyntax: Sendable {
    /// Such as `decode hci`.
    var words: [String]
    /// What stands behind them, for the help: `HEX`.
    var operands = ""
    /// How many words stand behind them.
    var operandCount: ClosedRange<Int> = 0...0
    /// What a shell may offer there.
    var offer = CommandOption.Offer.nothing
    /// Behind `--` stand a program and its words.
    var takesProgram = false
    /// One line.
    var summary: String
    /// What else a user has to know, in lines that fit a terminal.
    var details = ""
    /// But `--help`, which every command has.
    var ownOptions: [CommandOption] = []
    /// Of each of these at most one.
    var exclusive: [[String]] = [["--json", "--jsonl", "--quiet"]]
    /// What to do instead of options that it could be thought to have.
    var hints: [String: String] = [:]
    /// Each with its words behind `meshhost`.
    var examples: [String]
    var make: @Sendable (CommandWords) throws(UsageError) -> HostCommand

    var name: String { words.joined(separator: " ") }
    var options: [CommandOption] { ownOptions + [.help] }
    var synopsis: String { operands.isEmpty ? name : "\(name) \(operands)" }

    func option(_ name: String) -> CommandOption? {
        options.first { $0.name == name }
    }
}
