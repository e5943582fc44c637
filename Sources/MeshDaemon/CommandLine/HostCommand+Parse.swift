// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

extension HostCommand {
    /// Reads the words after the program's name. Options may stand anywhere; each has to be one of the command's.
    static func parse(_ words: [String]) throws(UsageError) -> (command: HostCommand, options: HostOptions) {
        var scanner = WordScanner(words)
        var parsed = try scanner.scan()
        if parsed.has("--help") || words.isEmpty {
            return (.help(try CommandHelp.topic(parsed.operands)), HostOptions())
        }
        guard !parsed.operands.isEmpty else {
            throw UsageError(message: "no command is named; it may stand before its options or behind them")
        }
        let syntax = try CommandTable.syntax(of: parsed.operands)
        do throws(UsageError) {
            parsed.operands.removeFirst(min(syntax.words.count, parsed.operands.count))
            if !syntax.takesProgram {
                parsed.operands += parsed.trailing ?? []
                parsed.trailing = nil
            }
            try syntax.check(parsed)
            return (try syntax.make(parsed), HostOptions(parsed))
        } catch {
            throw UsageError(message: error.message, topic: syntax.name)
        }
    }
}

extension HostOptions {
    fileprivate init(_ words: CommandWords) {
        configFiles = words.all("--config")
        assignments = words.all("--set")
        controlSocket = words["--control"]
        isJSON = words.has("--json")
        isQuiet = words.has("--quiet")
    }
}

extension CommandSyntax {
    /// Throws for what goes with other commands only, stands twice, or excludes each other.
    fileprivate func check(_ words: CommandWords) throws(UsageError) {
        var seen: Set<String> = []
        for (name, value) in words.met {
            guard let option = option(name) else { throw refusal(of: name) }
            if !seen.insert(name).inserted, !option.isRepeatable, option.value != nil {
                throw UsageError(message: "\(name) stands twice; \(self.name) takes one")
            }
            if value?.isEmpty == true {
                throw UsageError(message: "\(name) has an empty value; write \(name) \(option.value ?? "")")
            }
        }
        for group in exclusive {
            let both = group.filter(seen.contains)
            if both.count > 1 { throw UsageError(message: "\(both[0]) and \(both[1]) exclude each other") }
        }
        if words.operands.count < operandCount.lowerBound {
            throw UsageError(message: "\(name): say `meshhost \(synopsis)`")
        }
        if words.operands.count > operandCount.upperBound {
            let extra = words.operands[operandCount.upperBound]
            throw UsageError(message: "\(name): unexpected word \"\(extra)\"; say `meshhost \(synopsis)`")
        }
    }

    /// Why it does not take an option: whose that is, or what to do instead, and which it has.
    private func refusal(of option: String) -> UsageError {
        let others = CommandTable.all.filter { $0.option(option) != nil }.map(\.name)
        let instead =
            hints[option].map { ": \($0)" }
            ?? (others.isEmpty || others.count > 3 ? "" : ", which goes with \(others.joined(separator: " and "))")
        return UsageError(message: "\(name) has no \(option)\(instead)\(optionsText)")
    }

    /// `; it has …`
    fileprivate var optionsText: String { "; it has \(options.map(\.name).joined(separator: ", "))" }

    /// Why there is no such option at all.
    fileprivate func refusal(ofUnknown option: String) -> UsageError {
        let near = NearestName.of(option, among: options.map(\.name)).map { "; did you mean \($0)?" }
        return UsageError(message: "\(name) has no \(option)\(near ?? optionsText)", topic: name)
    }
}

/// Goes through the words of a command line; `--name=value` is two of them.
private struct WordScanner {
    private var words: ArraySlice<String>

    init(_ words: [String]) {
        self.words = words[...]
    }

    mutating func scan() throws(UsageError) -> CommandWords {
        var parsed = CommandWords()
        while let word = words.popFirst() {
            if word == "--" {
                parsed.trailing = Array(words)
                break
            }
            guard word.hasPrefix("-"), word.count > 1, word != "--version" else {
                parsed.operands.append(word == "--version" ? "version" : word)
                continue
            }
            var name = word
            var inline: String?
            if word.hasPrefix("--"), let equals = word.firstIndex(of: "=") {
                name = String(word[..<equals])
                inline = String(word[word.index(after: equals)...])
            }
            guard let option = CommandTable.options.first(where: { $0.name == name || $0.short == name }) else {
                throw unknown(name, parsed.operands)
            }
            if option.value == nil, inline != nil { throw mistake("\(name) takes no value", parsed.operands) }
            if option.value == nil {
                parsed.add(option.name, nil)
            } else if let value = inline ?? nextValue() {
                parsed.add(option.name, value)
            } else {
                throw mistake("\(name) needs a value: \(name) \(option.value ?? "")", parsed.operands)
            }
        }
        return parsed
    }

    /// The next word, unless it is an option: who has left out a value is told so.
    private mutating func nextValue() -> String? {
        guard let word = words.first, !CommandTable.options.contains(where: { $0.name == word }) else { return nil }
        return words.popFirst()
    }

    /// The command may stand behind the mistake.
    private func syntax(_ operands: [String]) -> CommandSyntax? {
        try? CommandTable.syntax(of: operands + words.prefix { $0 != "--" }.filter { !$0.hasPrefix("-") })
    }

    private func mistake(_ message: String, _ operands: [String]) -> UsageError {
        UsageError(message: message, topic: syntax(operands)?.name)
    }

    private func unknown(_ option: String, _ operands: [String]) -> UsageError {
        if let syntax = syntax(operands) { return syntax.refusal(ofUnknown: option) }
        let near = NearestName.of(option, among: CommandTable.options.map(\.name)).map { "; did you mean \($0)?" }
        return UsageError(message: "unknown option \(option)\(near ?? "")")
    }
}
