// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Scripts that complete the words of a command line in a shell, from the table that the parser uses.
enum CommandCompletion {
    enum Shell: String, Equatable, CaseIterable {
        case bash
        case zsh
        case fish
    }

    static func script(_ shell: Shell) -> String {
        switch shell {
        case .bash: bash
        case .zsh: "#compdef meshhost\nautoload -U +X bashcompinit && bashcompinit\n" + bash
        case .fish: fish
        }
    }

    // MARK: bash, and zsh through its emulation

    private static var bash: String {
        """
        # What `meshhost completion` prints: words of meshhost for bash and zsh.
        _meshhost() {
            local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
            local words=() index
            COMPREPLY=()
            for ((index = 1; index < COMP_CWORD; index++)); do
                case ${COMP_WORDS[index]} in
                \(valueOptions.joined(separator: "|"))) ((index++))
                    if [[ ${COMP_WORDS[index]} == = ]]; then ((index++)); fi ;;
                -*) ;;
                *) words+=("${COMP_WORDS[index]}") ;;
                esac
            done
            case $previous in
        \(valueCases)    esac
            local offers= files=
            case "${words[*]:0:2}" in
        \(CommandTable.all.filter { $0.words.count == 2 }.map { bashCase($0) }.joined())    *)
                case "${words[*]:0:1}" in
        \(CommandTable.verbs.map { bashVerbCase($0) }.joined())        '') offers='\(CommandTable.verbs.joined(separator: " "))' ;;
                esac ;;
            esac
            if [[ $current == -* ]]; then
                COMPREPLY=($(compgen -W "${offers}" -- "$current"))
                return
            fi
            local word
            for word in $offers; do [[ $word == -* ]] || COMPREPLY+=($(compgen -W "$word" -- "$current")); done
            if [[ $files ]]; then COMPREPLY+=($(compgen -f -- "$current")); fi
        }
        complete -o filenames -F _meshhost meshhost

        """
    }

    /// Options that take the next word, by all of their names.
    private static var valueOptions: [String] {
        CommandTable.options.filter { $0.value != nil }.flatMap { [$0.name] + ($0.short.map { [$0] } ?? []) }
    }

    private static var valueCases: String {
        CommandTable.options.filter { $0.value != nil }.map { option in
            let names = ([option.name] + (option.short.map { [$0] } ?? [])).joined(separator: "|")
            let reply =
                switch option.offer {
                case .files: "COMPREPLY=($(compgen -f -- \"$current\")); "
                case .words(let words): "COMPREPLY=($(compgen -W '\(words.joined(separator: " "))' -- \"$current\")); "
                case .nothing: ""
                }
            return "    \(names)) \(reply)return ;;\n"
        }.joined()
    }

    private static func bashCase(_ syntax: CommandSyntax) -> String {
        "    '\(syntax.name)') offers='\(offers(syntax).joined(separator: " "))' files=\(files(syntax)) ;;\n"
    }

    private static func bashVerbCase(_ verb: String) -> String {
        let words = seconds(verb) + (single(verb).map { offers($0) } ?? ["--help"])
        return
            "        '\(verb)') offers='\(words.joined(separator: " "))' files=\(single(verb).map { files($0) } ?? "") ;;\n"
    }

    private static func offers(_ syntax: CommandSyntax) -> [String] {
        var offers = syntax.options.flatMap { [$0.name] + ($0.short.map { [$0] } ?? []) }
        if case .words(let words) = syntax.offer { offers = words + offers }
        return offers
    }

    private static func files(_ syntax: CommandSyntax) -> String { syntax.offer == .files ? "1" : "" }

    /// The second words of commands that begin with this one.
    private static func seconds(_ verb: String) -> [String] {
        CommandTable.all.filter { $0.words[0] == verb && $0.words.count == 2 }.map { $0.words[1] }
    }

    /// The command that is this word alone.
    private static func single(_ verb: String) -> CommandSyntax? {
        CommandTable.all.first { $0.words == [verb] }
    }

    // MARK: fish

    private static var fish: String {
        var lines = ["# What `meshhost completion` prints: words of meshhost for fish.", "complete -c meshhost -f"]
        func add(_ condition: String, _ rest: String) {
            lines.append("complete -c meshhost -n '\(condition)' \(rest)")
        }
        for verb in CommandTable.verbs {
            let summary = single(verb)?.summary ?? seconds(verb).joined(separator: ", ")
            add("__fish_use_subcommand", "-a \(verb) -d \(quoted(summary))")
        }
        for syntax in CommandTable.all {
            let (verb, second) = (syntax.words[0], syntax.words.dropFirst().first)
            var condition = "__fish_seen_subcommand_from \(verb)"
            if let second {
                let others = seconds(verb).joined(separator: " ")
                add(
                    "\(condition); and not __fish_seen_subcommand_from \(others)",
                    "-a \(second) -d \(quoted(syntax.summary))")
                condition += "; and __fish_seen_subcommand_from \(second)"
            }
            if case .words(let words) = syntax.offer { add(condition, "-a \(quoted(words.joined(separator: " ")))") }
            if syntax.offer == .files { add(condition, "-F") }
            for option in syntax.options { add(condition, fish(option)) }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func fish(_ option: CommandOption) -> String {
        var text = "-l \(option.name.dropFirst(2))"
        if let short = option.short { text += " -s \(short.dropFirst())" }
        switch (option.value, option.offer) {
        case (nil, _): break
        case (_, .files): text += " -r -F"
        case (_, .words(let words)): text += " -x -a \(quoted(words.joined(separator: " ")))"
        case (_, .nothing): text += " -x"
        }
        return text + " -d \(quoted(option.help))"
    }

    /// In single quotes, where fish knows `\\` and `\'` alone.
    private static func quoted(_ text: String) -> String {
        var quoted = "'"
        for character in text {
            if character == "'" || character == "\\" { quoted.append("\\") }
            quoted.append(character)
        }
        return quoted + "'"
    }
}
