// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What `help` and `--help` print.
enum CommandHelp {
    enum Topic: Equatable {
        case program
        /// All commands that begin with this word.
        case family(String)
        /// The command with these words.
        case command([String])
    }

    /// What these words of a command line are about.
    static func topic(_ words: [String]) throws(UsageError) -> Topic {
        guard let first = words.first else { return .program }
        if words.count == 1, CommandTable.all.filter({ $0.words[0] == first }).allSatisfy({ $0.words.count > 1 }),
            CommandTable.verbs.contains(first)
        {
            return .family(first)
        }
        return .command(try CommandTable.syntax(of: words).words)
    }

    static func text(_ topic: Topic) -> String {
        switch topic {
        case .program: overview
        case .family(let word): family(word)
        case .command(let words): CommandTable.all.first { $0.words == words }.map(text) ?? overview
        }
    }

    // MARK: Of all

    private static var overview: String {
        """
        meshhost: a host for mesh radios and other byte-link devices

        usage: meshhost COMMAND [options]

        \(rows(CommandTable.all.map { ("  " + $0.brief, $0.summary) }, width: 33))
        Each command has options of its own: `meshhost COMMAND --help` tells them, with examples. Many have

        \(rows(
            (CommandOption.ofConfig + [.control, .json, .quiet("no output but errors"), .help]).map {
                ("  " + $0.synopsis, $0.help)
            }, width: 33))
        Data goes to stdout, diagnostics to stderr. Exit status: 0 ok, 64 usage, 69 no daemon or another
        instance, not all could be applied, or doctor or status found a problem, 70 internal, 74 output, 77 permission,
        78 configuration.

        """
    }

    // MARK: Of some

    private static func family(_ word: String) -> String {
        let members = CommandTable.all.filter { $0.words[0] == word }
        return """
            usage:

            \(rows(members.map { ("  meshhost " + $0.synopsis, $0.summary) }, width: 36))
            `meshhost \(members[0].name) --help` and so on tell the options, with examples.

            """
    }

    // MARK: Of one

    private static func text(_ syntax: CommandSyntax) -> String {
        var parts = [
            "meshhost \(syntax.name): \(syntax.summary)", "usage: meshhost \(syntax.synopsis) [options]",
        ]
        if !syntax.details.isEmpty { parts.append(syntax.details) }
        parts.append("options:\n" + rows(syntax.options.map { ("  " + $0.synopsis, $0.help) }, width: 28).trimmed)
        let examples = syntax.examples.map { "  meshhost \($0)" }.joined(separator: "\n")
        parts.append("\(syntax.examples.count == 1 ? "example" : "examples"):\n\(examples)")
        let kin = CommandTable.all.filter { $0.words[0] == syntax.words[0] && $0.words != syntax.words }
        if !kin.isEmpty {
            parts.append("see also: " + kin.map { "`meshhost \($0.name)`" }.joined(separator: ", "))
        }
        return parts.joined(separator: "\n\n") + "\n"
    }

    /// Two columns; what is too long for the first has a line of its own.
    private static func rows(_ rows: [(String, String)], width: Int) -> String {
        rows.map { left, right in
            let gap =
                left.count < width - 1
                ? String(repeating: " ", count: width - left.count) : "\n" + String(repeating: " ", count: width)
            return left + gap + right + "\n"
        }.joined()
    }
}

extension CommandSyntax {
    /// The form that stands in the help of all: options are left to its own.
    fileprivate var brief: String {
        switch name {
        case "device": "device NAME [VERB]"
        case "bridge": "bridge"
        case "module-test": "module-test MODULE.so"
        case "modules": "modules"
        default: synopsis
        }
    }
}

extension String {
    fileprivate var trimmed: String { last == "\n" ? String(dropLast()) : self }
}
