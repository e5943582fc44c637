// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshModuleTesting
internal import MeshTransportAPI

/// What `meshhost module-test` is told. The words behind `--` are another program's.
struct ModuleTestOptions: Equatable {
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
    var assignments: [String] = []
    var isolations = ModuleIsolation.allCases
    var hasEcho = false
    var patience = Duration.seconds(30)
    var rules: [String] = []
    var wantsList = false
    /// A rule that could not be tried counts as one that is broken.
    var isStrict = false
    var isJSON = false
    var isQuiet = false

    static let options = [
        CommandOption(
            name: "--option", short: "-o", value: "KEY=VALUE", isRepeatable: true,
            help: "an option of the device to connect to; repeatable"),
        CommandOption(name: "--device", value: "NAME", help: "a device of the config"), .config, .set,
        CommandOption(
            name: "--peer", value: "echo", help: "that device gives back every frame: frames are looked at both ways",
            offer: .words(["echo"])),
        CommandOption(
            name: "--isolation", value: "WHERE",
            help: "in-process, process or both (default): where transports are tried",
            offer: .words(["in-process", "process", "both"])),
        CommandOption(
            name: "--rule", value: "TEXT", isRepeatable: true, help: "only rules that contain TEXT; repeatable"),
        CommandOption(
            name: "--patience", value: "TIME", help: "how long the module may take for anything, by default 30s"),
        CommandOption(name: "--strict", help: "a rule that could not be tried counts as broken"),
        CommandOption(name: "--list", help: "the rules, and nothing else"),
        .json, .quiet("broken rules only"),
    ]

    init(_ words: CommandWords) throws(UsageError) {
        wantsList = words.has("--list")
        isJSON = words.has("--json")
        isQuiet = words.has("--quiet")
        if wantsList {
            let others = words.met.map(\.name).filter { $0 != "--list" && $0 != "--json" }
            if let other = others.first ?? words.operands.first ?? words.trailing?.first {
                throw UsageError(message: "module-test --list shows all rules: it takes no \(other)")
            }
            return
        }
        for text in words.all("--option") {
            guard let equals = text.firstIndex(of: "="), equals != text.startIndex else {
                throw UsageError(message: "--option \(text): write KEY=VALUE")
            }
            options[String(text[..<equals])] = String(text[text.index(after: equals)...])
        }
        configFiles = words.all("--config")
        assignments = words.all("--set")
        rules = words.all("--rule")
        isStrict = words.has("--strict")
        if let text = words["--isolation"] { isolations = try Self.isolations(text) }
        if let peer = words["--peer"] {
            guard peer == "echo" else {
                throw UsageError(message: "--peer \(peer): say --peer echo, if the device gives back every frame")
            }
            hasEcho = true
        }
        if let duration = try words.duration("--patience", such: "30s") {
            guard duration > .zero else {
                throw UsageError(
                    message: "--patience \(duration.optionText): nothing takes no time; write for example 30s")
            }
            patience = duration
        }
        let device = words["--device"]
        subject = try Self.subject(words.operands, words.trailing, device)
        if device == nil, let word = ["--config", "--set"].first(where: words.has) {
            throw UsageError(message: "module-test: \(word) needs --device")
        }
        for rule in rules where !ModuleTest.rules.contains(where: { $0.rule.lowercased().contains(rule.lowercased()) })
        {
            throw UsageError(message: "--rule \(rule): no rule contains that; see `meshhost module-test --list`")
        }
    }

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
                message: "module-test: say `meshhost module-test MODULE.so`, `meshhost module-test -- PROGRAM...` or "
                    + "`meshhost module-test --config FILE --device NAME`")
        }
    }
}
