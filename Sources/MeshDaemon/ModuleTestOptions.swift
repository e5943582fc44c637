// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshModuleTesting
internal import MeshTransportAPI

/// What `meshhost module-test` is told. It has words of its own: those behind `--` are another program's.
struct ModuleTestOptions: Equatable {
    static let word = "module-test"

    enum Subject: Equatable {
        /// A file, or the name of a module that is installed.
        case module(String)
        case command([String])
        /// That of a configured device, with its options.
        case device(String)
    }

    /// Nil: nothing is tested.
    var subject: Subject?
    var options: [String: String] = [:]
    var configFiles: [String] = []
    var isolations = ModuleIsolation.allCases
    var hasEcho = false
    var patience = Duration.seconds(30)
    var rules: [String] = []
    var wantsList = false
    var wantsHelp = false
    /// A rule that could not be tried counts as one that is broken.
    var isStrict = false
    var isJSON = false
    var isQuiet = false

    /// Reads the words after `module-test`.
    init(_ words: [String]) throws(UsageError) {
        var words = words[...]
        var positional: [String] = []
        var command: [String]?
        var device: String?
        func value(of option: String, _ inline: String?) throws(UsageError) -> String {
            if let inline { return inline }
            guard let value = words.popFirst() else { throw UsageError(message: "\(option) needs a value") }
            return value
        }
        while let word = words.popFirst() {
            if word == "--" {
                command = Array(words)
                break
            }
            var name = word
            var inline: String?
            if word.hasPrefix("--"), let equals = word.firstIndex(of: "=") {
                name = String(word[..<equals])
                inline = String(word[word.index(after: equals)...])
            }
            switch name {
            case "--option", "-o":
                let text = try value(of: name, inline)
                guard let equals = text.firstIndex(of: "="), equals != text.startIndex else {
                    throw UsageError(message: "\(name) \(text): write KEY=VALUE")
                }
                options[String(text[..<equals])] = String(text[text.index(after: equals)...])
            case "--config", "-c": configFiles.append(try value(of: name, inline))
            case "--device": device = try value(of: name, inline)
            case "--isolation": isolations = try Self.isolations(try value(of: name, inline))
            case "--peer":
                let peer = try value(of: name, inline)
                guard peer == "echo" else {
                    throw UsageError(message: "--peer \(peer): say --peer echo, if the device gives back every frame")
                }
                hasEcho = true
            case "--patience":
                let text = try value(of: name, inline)
                guard let duration = Duration(optionText: text), duration > .zero else {
                    throw UsageError(message: "--patience \(text): not a duration; write for example 30s")
                }
                patience = duration
            case "--rule": rules.append(try value(of: name, inline))
            case "--list": wantsList = true
            case "--strict": isStrict = true
            case "--json": isJSON = true
            case "--quiet", "-q": isQuiet = true
            case "--help", "-h": wantsHelp = true
            default:
                if word.hasPrefix("-") {
                    let near = NearestName.of(name, among: Self.names).map { "; did you mean \($0)?" } ?? ""
                    throw UsageError(message: "module-test: unknown option \(word)\(near)")
                }
                positional.append(word)
            }
        }
        if wantsHelp || wantsList { return }
        subject = try Self.subject(positional, command, device)
        if device == nil, !configFiles.isEmpty { throw UsageError(message: "module-test: --config needs --device") }
        for rule in rules where !ModuleTest.rules.contains(where: { $0.rule.lowercased().contains(rule.lowercased()) })
        {
            throw UsageError(message: "--rule \(rule): no rule contains that; see `meshhost module-test --list`")
        }
    }

    private static let names = [
        "--option", "--config", "--device", "--isolation", "--peer", "--patience", "--rule", "--list", "--strict",
        "--json", "--quiet", "--help",
    ]

    private static func isolations(_ text: String) throws(UsageError) -> [ModuleIsolation] {
        if text == "both" { return ModuleIsolation.allCases }
        guard let isolation = ModuleIsolation(rawValue: text) else {
            throw UsageError(message: "--isolation \(text): say in-process, process or both")
        }
        return [isolation]
    }

    private static func subject(
        _ positional: [String], _ command: [String]?, _ device: String?
    ) throws(UsageError) -> Subject {
        switch (positional.count, command, device) {
        case (1, nil, nil): return .module(positional[0])
        case (0, let words?, nil) where !words.isEmpty: return .command(words)
        case (0, nil, let device?): return .device(device)
        default:
            throw UsageError(
                message: "module-test: say `module-test MODULE.so`, `module-test -- PROGRAM…` or "
                    + "`module-test --config FILE --device NAME`")
        }
    }

    static let usage = """
        Tries a transport module against the rules of the module ABI and of transports.

        usage: meshhost module-test MODULE.so|NAME [options]     a library
               meshhost module-test [options] -- PROGRAM…        a program that speaks the protocol of modules
               meshhost module-test --device NAME [-c FILE]      what a configured device uses, with its options

          -o, --option KEY=VALUE    an option of the device to connect to; repeatable
              --peer echo           that device gives back every frame: frames are looked at both ways
              --isolation WHERE     in-process, process or both (default): where transports are tried
              --rule TEXT           only rules that contain TEXT; repeatable
              --patience 30s        how long the module may take for anything
              --strict              a rule that could not be tried counts as broken
              --list                the rules, and nothing else
              --json                one JSON document instead of lines
          -q, --quiet               broken rules only
          -h, --help                this text

        Each rule is tried in a process of its own, so a crash breaks one rule. Rules that need a link are skipped
        without a device that can be connected; do not name one that is in use: frames are sent to it.

        Exit status: 0 no rule is broken, 69 some are, 64 usage, 78 the options are not acceptable.

        """
}
