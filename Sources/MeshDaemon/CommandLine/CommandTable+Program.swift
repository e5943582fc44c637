// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension CommandTable {
    /// The program itself.
    static let program: [CommandSyntax] = [
        CommandSyntax(
            words: ["completion"], operands: "bash|zsh|fish", operandCount: 1...1,
            offer: .words(CommandCompletion.Shell.allCases.map(\.rawValue)),
            summary: "a script that completes words in a shell",
            examples: ["completion bash > ~/.local/share/bash-completion/completions/meshhost"],
            make: completion),
        CommandSyntax(
            words: ["version"], summary: "version of this program, and of its module ABI",
            ownOptions: [.json], examples: ["version"], make: { _ in .version }),
        CommandSyntax(
            words: ["help"], operands: "[COMMAND]", operandCount: 0...(.max),
            summary: "all commands, or one with its options and examples",
            examples: ["help", "help device", "device --help"],
            make: { words throws(UsageError) in .help(try CommandHelp.topic(words.operands)) }),
    ]

    private static func completion(_ words: CommandWords) throws(UsageError) -> HostCommand {
        guard let shell = CommandCompletion.Shell(rawValue: words.operands[0]) else {
            throw UsageError.unknown(
                words.operands[0], in: "completion", of: CommandCompletion.Shell.allCases.map(\.rawValue))
        }
        return .completion(shell)
    }
}
