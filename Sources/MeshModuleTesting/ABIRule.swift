// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import MeshTransportAPI

/// One rule of the module ABI that is tried on purpose: a sentence and its trial, in a process of its own.
struct ABIRule: Sendable {
    /// What a trial cannot do without.
    enum Need: Sendable {
        /// The options of a device, which need not be there.
        case options
        /// A search.
        case scan
        /// Requests.
        case requests
        /// That the device gives back every frame.
        case echo
    }

    var name: String
    var needs: [Need]
    var trial: @Sendable (Stage) throws -> Void

    init(_ name: String, needs: [Need] = [], trial: @escaping @Sendable (Stage) throws -> Void) {
        self.name = name
        self.needs = needs
        self.trial = trial
    }

    static var all: [ABIRule] { description + life + beside + links + frames }
    static let loading = "the description is valid"

    /// Tries it. The instances that are left end in an orderly way: what they say then counts, too.
    func run(on stage: Stage) throws {
        for need in needs { try stage.check(need) }
        try trial(stage)
        for instance in stage.instances { try instance.end() }
    }
}

extension Stage {
    fileprivate func check(_ need: ABIRule.Need) throws {
        switch need {
        case .options:
            if !issues.isEmpty { throw missingOptions }
        case .scan:
            if !module.has(MH_CAP_SCAN) || module.ops.scan == nil {
                throw RuleEnd.inapplicable("the module does not search")
            }
        case .requests:
            if module.ops.manage == nil { throw RuleEnd.inapplicable("the module takes no requests") }
        case .echo:
            if !hasEcho { throw RuleEnd.skipped("it needs a device that gives back every frame: say --peer echo") }
        }
    }
}
