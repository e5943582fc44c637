// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshModuleHost
import MeshTransportAPI
import MeshTransportTesting
import Testing

@testable import MeshModuleTesting

/// A module with one fault at a time: each is found, under the name of the rule that it breaks.
@Suite(.serialized, .timeLimit(.minutes(20))) struct FaultyModuleTests {
    static let folder = ModuleLocator().programFolder ?? "."
    static let path = folder + "/libfixture-faulty.so"

    /// What these rules give for a module with this fault.
    private static func report(
        fault: String, rules: [String], patience: Duration = .seconds(60), path: String = path
    ) throws -> ModuleTestReport {
        let settings = ModuleTestSettings(
            .library(path: path), options: ["fault": .string(fault), "token": "swordfish"], hasEcho: true,
            patience: patience, rules: rules)
        return try ModuleTest(settings, program: folder + "/meshhost").run { _ in }
    }

    @Test func `a module without a fault keeps every rule`() throws {
        let report = try Self.report(fault: "none", rules: [])
        #expect(report.broken.map(\.line) == [])
        #expect(report.untried.map(\.line) == [])
        #expect(report.module?.name == "faulty")
    }

    /// Faults that show in one trial.
    @Test(arguments: [
        ("lies about options", "options are judged without an instance, always the same"),
        ("is somebody else", "options are judged without an instance, always the same"),
        ("fails to start", "an instance stops right after its start"),
        ("starts slowly", "functions return at once"),
        ("leaks memory", "1,000 instances in a row leave nothing behind"),
        ("leaks descriptors", "1,000 instances in a row leave nothing behind"),
        ("leaks threads", "1,000 instances in a row leave nothing behind"),
        ("exits in connect", "connect is answered by link_up or link_down"),
        ("crashes in send", "frames of 1 byte up to the maximum are carried"),
        ("connects once", "links can be made one after the other"),
        ("blames the peer", "disconnect is answered by one link_down, with MH_ECANCELED"),
        ("ends what has ended", "disconnect of a link that has ended is refused"),
        ("accepts any length", "frames of no byte, or of more than the maximum, are refused"),
        ("sends without a link", "a send on a link that has ended is refused"),
        ("ends what it probes", "a link that is good outlives a probe"),
        ("has no words", "diagnostics are one JSON object"),
        ("knows every verb", "a request with an unknown verb is refused"),
    ])
    func `a fault is found by the rule about it`(fault: String, rule: String) throws {
        let report = try Self.report(fault: fault, rules: [rule])
        #expect(report.broken.contains { $0.rule == rule }, "\(report.results.map(\.line))")
    }

    /// Faults that show by something that never comes.
    @Test(arguments: [
        ("never stops", "an instance stops right after its start"),
        ("never answers connect", "connect is answered by link_up or link_down"),
        ("hangs in connect", "connect is answered by link_up or link_down"),
        ("never answers disconnect", "disconnect is answered by one link_down, with MH_ECANCELED"),
        ("never is done", "frames of 1 byte up to the maximum are carried"),
        ("never has room again", "frames that find no room are told when there is some"),
        ("swaps frames", "frames come back as they went"),
        ("changes frames", "frames come back as they went"),
        ("cuts frames", "frames come back as they went"),
        ("loses frames", "frames that the host has no room for are kept"),
    ])
    func `what never comes is missed`(fault: String, rule: String) throws {
        let report = try Self.report(fault: fault, rules: [rule], patience: .milliseconds(500))
        #expect(report.broken.contains { $0.rule == rule }, "\(report.results.map(\.line))")
    }

    /// Faults against what always holds, with a trial that they show in.
    @Test(arguments: [
        ("talks in destroy", StandingRule.silence, "an instance stops right after its start"),
        ("talks after destroy", .silence, "an instance stops right after its start"),
        ("stops twice", .stopped, "an instance stops right after its start"),
        ("stops before its links", .stopped, "stop ends an open link"),
        ("comes up twice", .links, "connect is answered by link_up or link_down"),
        ("goes down twice", .links, "disconnect is answered by one link_down, with MH_ECANCELED"),
        ("speaks of other links", .links, "connect is answered by link_up or link_down"),
        ("is done after the end", .links, "disconnect ends a link at every step"),
        ("is done twice", .sends, "frames of 1 byte up to the maximum are carried"),
        ("is done out of order", .sends, "frames that find no room are told when there is some"),
        ("answers what it refused", .sends, "frames that find no room are told when there is some"),
        ("receives before link_up", .frames, "connect is answered by link_up or link_down"),
        ("receives after link_down", .frames, "disconnect is answered by one link_down, with MH_ECANCELED"),
        ("receives giants", .frames, "connect is answered by link_up or link_down"),
        ("cannot wait", .room, "frames that the host has no room for are kept"),
        ("answers twice", .requests, "a request with an unknown verb is refused"),
        ("carries nothing", .form, "connect is answered by link_up or link_down"),
        ("names its peer badly", .form, "connect is answered by link_up or link_down"),
        ("ends well", .form, "disconnect is answered by one link_down, with MH_ECANCELED"),
        ("logs at no level", .form, "an instance stops right after its start"),
        ("counts badly", .form, "an instance stops right after its start"),
        ("tells secrets", .secrets, "an instance stops right after its start"),
        ("writes to stdout", .surroundings, "an instance stops right after its start"),
        ("changes folder", .surroundings, "an instance stops right after its start"),
        ("changes umask", .surroundings, "an instance stops right after its start"),
        ("changes environment", .surroundings, "an instance stops right after its start"),
        ("handles signals", .surroundings, "an instance stops right after its start"),
        ("leaks a handle", .handles, "an instance stops right after its start"),
    ])
    func `a fault against what always holds is found in any trial`(
        fault: String, rule: StandingRule, trial: String
    ) throws {
        let report = try Self.report(fault: fault, rules: [rule.rawValue, trial], patience: .seconds(10))
        #expect(report.broken.contains { $0.rule == rule.rawValue }, "\(report.results.map(\.line))")
    }

    @Test(arguments: [
        ("short", "40 bytes"), ("major", "ABI major 2"), ("no vendor", "vendor"), ("no functions", "no functions"),
        ("no send", "function send"), ("reserved", "reserved0"), ("search without scan", "MH_CAP_SCAN"),
        ("option name", "\"Fault\""), ("option twice", "declared twice"), ("option kind", "the type 9"),
        ("option default", "no int"), ("option help", "no sentence"), ("crash", "signal 9"),
    ])
    func `a faulty description is named`(fault: String, word: String) throws {
        setenv("FAULTY_DESCRIPTION", fault, 1)
        defer { unsetenv("FAULTY_DESCRIPTION") }
        let report = try Self.report(fault: "none", rules: ["the description is valid"])
        #expect(report.broken.contains { $0.line.contains(word) }, "\(report.results.map(\.line))")
    }

    @Test(arguments: ["another each time", "threads"])
    func `an entry function that does more is noticed`(fault: String) throws {
        setenv("FAULTY_DESCRIPTION", fault, 1)
        defer { unsetenv("FAULTY_DESCRIPTION") }
        let rule = "the entry function does nothing but answer"
        let report = try Self.report(fault: "none", rules: [rule])
        #expect(report.broken.contains { $0.rule == rule }, "\(report.results.map(\.line))")
    }

    @Test func `a file that is no module is told from one`() throws {
        let report = try Self.report(fault: "none", rules: ["the description is valid"], path: "/etc/passwd")
        #expect(report.module == nil)
        #expect(report.broken.count == 1, "\(report.results.map(\.line))")
    }

    @Test func `options are judged before anything is tried`() throws {
        let settings = ModuleTestSettings(.library(path: Self.path), options: ["fualt": "none"])
        let module = try ModuleTest(settings, program: Self.folder + "/meshhost").examine()
        #expect(module?.problems == ["unknown option \"fualt\" (did you mean \"fault\"?)"])
    }

    @Test func `no two rules of one part have the same sentence`() {
        for part in ModuleTestPart.allCases {
            let rules = ModuleTest.rules.filter { $0.part == part }.map(\.rule)
            #expect(Set(rules).count == rules.count)
        }
        #expect(ModuleTest.rules.count { $0.part == .functions } == ABIRule.all.count + StandingRule.allCases.count)
    }
}
