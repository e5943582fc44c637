// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
public import MeshTransportAPI
public import MeshTransportTesting

/// What the rules gave for one module.
public struct ModuleTestReport: Sendable {
    public struct Result: Sendable, Hashable {
        public var part: ModuleTestPart
        /// The rule as a sentence.
        public var rule: String
        public var outcome: ConformanceResult.Outcome
        /// False: it was skipped because it says nothing about this module, whatever is given.
        public var isApplicable = true
        /// What else helps to find the fault, such as what the module wrote to standard error.
        public var notes: [String] = []

        public var isBroken: Bool { if case .broken = outcome { true } else { false } }

        /// `kept     RULE`, and for others why.
        public var line: String {
            switch outcome {
            case .kept: "kept     \(rule)"
            case .broken(let what): "broken   \(rule): \(what)"
            case .skipped(let why): "skipped  \(rule): \(why)"
            }
        }
    }

    /// What the module says of itself.
    public struct Module: Sendable, Hashable {
        public var name: String
        public var version: String
        public var vendor: String
        /// The ABI it was built with.
        public var abi: String
        /// What is wrong with the options that were given.
        public var problems: [String]
    }

    /// Nil: it does not even come so far.
    public var module: Module?
    public var results: [Result] = []

    public var kept: Int { results.count { $0.outcome == .kept } }
    public var broken: [Result] { results.filter(\.isBroken) }
    /// The rules that could be tried if more were given.
    public var untried: [Result] { skipped.filter(\.isApplicable) }
    public var skipped: [Result] { results.filter { if case .skipped = $0.outcome { true } else { false } } }

    /// `12 rules kept, 1 broken, 3 skipped`.
    public var summary: String { "\(kept) rules kept, \(broken.count) broken, \(skipped.count) skipped" }

    /// For programs.
    public var json: JSONValue {
        var document: [String: JSONValue] = [
            "schema": "meshhost.module-test/1", "ok": .bool(broken.isEmpty), "kept": .int(Int64(kept)),
            "broken": .int(Int64(broken.count)), "skipped": .int(Int64(skipped.count)),
            "rules": .array(results.map(\.json)),
        ]
        if let module { document["module"] = .object(module.members) }
        return .object(document)
    }
}

extension ModuleTestReport.Result {
    var json: JSONValue {
        var row: [String: JSONValue] = ["part": .string(part.rawValue), "rule": .string(rule)]
        row.merge(outcome.members) { $1 }
        if !notes.isEmpty { row["notes"] = .array(notes.map { .string($0) }) }
        return .object(row)
    }
}

extension ModuleTestReport.Module {
    /// As JSON, without what is wrong with it.
    var members: [String: JSONValue] {
        ["name": .string(name), "version": .string(version), "vendor": .string(vendor), "abi": .string(abi)]
    }
}

extension ConformanceResult.Outcome {
    /// As JSON: `outcome`, and `what` where there is something to say.
    var members: [String: JSONValue] {
        switch self {
        case .kept: ["outcome": "kept"]
        case .broken(let what): ["outcome": "broken", "what": .string(what)]
        case .skipped(let why): ["outcome": "skipped", "what": .string(why)]
        }
    }
}
