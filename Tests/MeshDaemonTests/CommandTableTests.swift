// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import MeshDaemon

/// Every command with every option there is.
struct CommandTableTests {
    /// What has to stand behind a command for it to be right, and for an option to be so.
    private static func base(_ syntax: CommandSyntax, for option: String) -> [String] {
        switch (syntax.name, option) {
        case ("device", "--for"), ("device", "--quiet"): ["roof", "release"]
        case ("bridge", "--to"): ["--listen", "/b"]
        case ("bridge", "--listen"): ["--to", "a:1"]
        case ("bridge", _):
            ["--to", "a:1", "--listen", "/b"]
                + (option == "--token" ? ["--secret-file", "c"] : option == "--secret-file" ? ["--token", "c"] : [])
        case ("module-test", "--config"), ("module-test", "--set"): ["--device", "roof"]
        case ("module-test", "--list"), ("module-test", "--device"): []
        case ("module-test", _): ["a.so"]
        case ("completion", _): ["bash"]
        default: syntax.operandCount.lowerBound == 0 ? [] : ["00"]
        }
    }

    /// One that its command takes.
    private static let values = [
        "--config": "a.toml", "--set": "daemon.log_level=debug", "--control": "/c", "--for": "20s", "--type": "link",
        "--since": "1", "--count": "1", "--module": "hci", "--adapter": "hci0", "--channel": "#bot", "--request": "32",
        "--to": "a:1", "--listen": "/b", "--ca": "f", "--token": "t", "--secret-file": "s", "--option": "a=b",
        "--device": "roof", "--peer": "echo", "--isolation": "process", "--rule": "stop", "--patience": "1s",
    ]

    private static func words(_ syntax: CommandSyntax, _ option: CommandOption) -> [String] {
        var words = [option.name]
        if option.value != nil {
            let pin = syntax.name == "pair" ? "123456" : String(repeating: "0", count: 64)
            words.append(option.name == "--pin" ? pin : values[option.name] ?? "")
        }
        return words
    }

    @Test func `each option has an effect, or is refused with those that have one`() throws {
        for syntax in CommandTable.all {
            for option in CommandTable.options where option.name != "--help" {
                let base = syntax.words + Self.base(syntax, for: option.name)
                let line = base + Self.words(syntax, option)
                guard syntax.option(option.name) != nil else {
                    let error = #expect(throws: UsageError.self, "\(line)") { try HostCommand.parse(line) }
                    let text = error?.message ?? ""
                    #expect(text.hasPrefix("\(syntax.name) has no \(option.name)"), "\(text)")
                    #expect(error?.topic == syntax.name)
                    for own in syntax.options { #expect(text.contains(own.name), "\(text)") }
                    continue
                }
                let (command, options) = try HostCommand.parse(line)
                let before = try? HostCommand.parse(base)
                #expect(before.map { $0.command != command || $0.options != options } ?? true, "\(line)")
            }
        }
    }

    @Test func `the help of each command has its form, its options and its examples`() throws {
        for syntax in CommandTable.all {
            let text = CommandHelp.text(.command(syntax.words))
            #expect(text.hasPrefix("meshhost \(syntax.name): "))
            #expect(text.contains("usage: meshhost \(syntax.synopsis) [options]\n"))
            for option in syntax.options { #expect(text.contains(option.synopsis), "\(syntax.name) \(option.name)") }
            #expect(!syntax.examples.isEmpty, "\(syntax.name)")
            for line in text.split(separator: "\n") where !line.hasPrefix("  meshhost") && !line.hasPrefix("see also") {
                #expect(line.count <= 120, "\(line)")
            }
            #expect(try HostCommand.parse(syntax.words + ["--help"]).command == .help(.command(syntax.words)))
        }
    }

    @Test func `every command stands in the help of all`() {
        let text = CommandHelp.text(.program)
        for syntax in CommandTable.all { #expect(text.contains("\n  \(syntax.name)"), "\(syntax.name)") }
    }

    /// What is redirected belongs to the shell.
    @Test func `each example is right`() throws {
        for syntax in CommandTable.all {
            for example in syntax.examples {
                var words: [String] = []
                for (index, part) in example.split(separator: "'", omittingEmptySubsequences: false).enumerated() {
                    words += index.isMultiple(of: 2) ? part.split(separator: " ").map(String.init) : [String(part)]
                }
                let line = words.prefix { $0 != "<" && $0 != ">" }
                #expect(throws: Never.self, "\(example)") { try HostCommand.parse(Array(line)) }
                #expect(example.hasPrefix(syntax.name) || syntax.name == "help", "\(example)")
            }
        }
    }

    @Test func `an option takes a value with every command or with none, and the same short name`() {
        for syntax in CommandTable.all {
            for option in syntax.options {
                let first = CommandTable.options.first { $0.name == option.name }
                #expect((first?.value == nil) == (option.value == nil), "\(option.name)")
                #expect(first?.short == option.short, "\(option.name)")
            }
        }
    }

    @Test(arguments: CommandCompletion.Shell.allCases)
    func `completion has every command and every option`(_ shell: CommandCompletion.Shell) {
        let script = CommandCompletion.script(shell)
        for syntax in CommandTable.all {
            for word in syntax.words { #expect(script.contains(word), "\(word)") }
            for option in syntax.options { #expect(script.contains(option.name.dropFirst(2)), "\(option.name)") }
        }
    }
}
