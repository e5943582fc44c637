// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI
internal import MeshTransportTesting

/// What the process of one trial is told, by its standard input.
struct TrialRequest: Sendable, Equatable {
    /// A library's path and the module's name, or a program and its arguments.
    var words: [String]
    var isCommand: Bool
    var part: ModuleTestPart
    /// Nil: what the module says of itself.
    var rule: String?
    var options: [String: JSONValue]
    var hasEcho: Bool
    /// Why no link comes up, as another trial has found.
    var obstacle: String?
    var milliseconds: Int64

    var document: Data {
        var request: [String: JSONValue] = [
            "words": .array(words.map { .string($0) }), "command": .bool(isCommand), "part": .string(part.rawValue),
            "options": .object(options), "echo": .bool(hasEcho), "patience_ms": .int(milliseconds),
        ]
        if let rule { request["rule"] = .string(rule) }
        if let obstacle { request["obstacle"] = .string(obstacle) }
        return JSONValue.object(request).serialized()
    }

    init(_ settings: ModuleTestSettings, _ part: ModuleTestPart, module: String, rule: String?, obstacle: String?) {
        self.obstacle = obstacle
        switch settings.subject {
        case .library(let path):
            words = [path, module]
            isCommand = false
        case .command(let words):
            self.words = words
            isCommand = true
        }
        self.part = part
        self.rule = rule
        options = settings.options
        hasEcho = settings.hasEcho
        milliseconds = settings.patience.milliseconds
    }

    init?(_ document: Data) {
        guard let json = try? JSONValue(parsing: document), let part = json["part"]?.stringValue,
            let part = ModuleTestPart(rawValue: part)
        else { return nil }
        words = (json["words"]?.arrayValue ?? []).compactMap(\.stringValue)
        isCommand = json["command"]?.boolValue ?? false
        self.part = part
        rule = json["rule"]?.stringValue
        obstacle = json["obstacle"]?.stringValue
        options = json["options"]?.objectValue ?? [:]
        hasEcho = json["echo"]?.boolValue ?? false
        milliseconds = json["patience_ms"]?.intValue ?? 30_000
        if words.isEmpty { return nil }
    }

    var patience: Duration { .milliseconds(milliseconds) }

    /// The options, with texts read as their kind wants it.
    func options(for table: [OptionSpec]) -> [String: JSONValue] {
        var read = options
        for spec in table {
            guard case .string(let text)? = options[spec.name] else { continue }
            switch spec.kind {
            case .string, .duration: break
            case .int: if let number = Int64(text) { read[spec.name] = .int(number) }
            case .bool: if let flag = ["true": true, "false": false][text] { read[spec.name] = .bool(flag) }
            }
        }
        return read
    }
}

/// What the process of a trial answers: what it is doing, line by line, and at last what came of it.
struct TrialAnswer: Sendable, Equatable {
    var outcome: ConformanceResult.Outcome
    /// False: the rule says nothing about this module, whatever is given.
    var isApplicable = true
    /// It was waited for in vain.
    var isOverdue = false
    /// Why no link came up.
    var obstacle: String?
    var breaches: [Breach] = []
    /// Asked what the module says of itself.
    var module: ModuleTestReport.Module?

    var document: JSONValue {
        var answer: [String: JSONValue] = [
            "applicable": .bool(isApplicable), "overdue": .bool(isOverdue),
            "breaches": .array(breaches.map { ["rule": .string($0.rule.rawValue), "what": .string($0.what)] }),
        ]
        answer.merge(outcome.members) { $1 }
        if let obstacle { answer["obstacle"] = .string(obstacle) }
        if let module {
            let problems: JSONValue = .array(module.problems.map { .string($0) })
            answer["module"] = .object(module.members.merging(["problems": problems]) { $1 })
        }
        return .object(answer)
    }

    init(
        _ outcome: ConformanceResult.Outcome, isApplicable: Bool = true, breaches: [Breach] = [],
        module: ModuleTestReport.Module? = nil
    ) {
        self.outcome = outcome
        self.isApplicable = isApplicable
        self.breaches = breaches
        self.module = module
    }

    /// There was no link to try it on.
    init(unreachable why: String, breaches: [Breach] = []) {
        self.init(.skipped("no link comes up (\(why)): give options of a device that is there"), breaches: breaches)
        obstacle = why
    }

    init?(_ json: JSONValue) {
        let what = json["what"]?.stringValue ?? ""
        switch json["outcome"]?.stringValue {
        case "kept": outcome = .kept
        case "broken": outcome = .broken(what)
        case "skipped": outcome = .skipped(what)
        default: return nil
        }
        obstacle = json["obstacle"]?.stringValue
        isOverdue = json["overdue"]?.boolValue ?? false
        isApplicable = json["applicable"]?.boolValue ?? true
        breaches = (json["breaches"]?.arrayValue ?? []).compactMap { entry in
            guard let rule = StandingRule(rawValue: entry["rule"]?.stringValue ?? "") else { return nil }
            return Breach(rule: rule, what: entry["what"]?.stringValue ?? "")
        }
        guard let facts = json["module"] else { return }
        func text(_ key: String) -> String { facts[key]?.stringValue ?? "" }
        module = ModuleTestReport.Module(
            name: text("name"), version: text("version"), vendor: text("vendor"), abi: text("abi"),
            problems: (facts["problems"]?.arrayValue ?? []).compactMap(\.stringValue))
    }
}
