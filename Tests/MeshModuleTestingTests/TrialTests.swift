// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshTransportAPI
import MeshTransportTesting
import Testing

@testable import MeshModuleTesting

/// What the processes of a test tell each other, and what comes of it.
@Suite struct TrialTests {
    @Test(arguments: [
        ModuleTestSettings.Subject.library(path: "/lib/acme.so"), .command(["/usr/bin/acme", "--fast"]),
    ])
    func `a request arrives as it was made`(subject: ModuleTestSettings.Subject) {
        let settings = ModuleTestSettings(
            subject, options: ["port": 7, "name": "x"], hasEcho: true, patience: .seconds(90))
        let request = TrialRequest(settings, .process, module: "acme", rule: "a rule", obstacle: "nobody there")
        #expect(TrialRequest(request.document) == request)
        #expect(request.patience == .seconds(90))
        #expect(TrialRequest(Data("{}".utf8)) == nil)
    }

    @Test func `an answer arrives as it was given`() {
        let module = ModuleTestReport.Module(name: "acme", version: "1", vendor: "Acme", abi: "1.2", problems: ["no"])
        var overdue = TrialAnswer(.broken("it has not come"), breaches: [Breach(rule: .silence, what: "a word")])
        overdue.isOverdue = true
        let answers = [
            overdue, TrialAnswer(.kept, module: module), TrialAnswer(.skipped("no"), isApplicable: false),
            TrialAnswer(unreachable: "nobody there"),
        ]
        for answer in answers { #expect(TrialAnswer(answer.document) == answer) }
        #expect(TrialAnswer(JSONValue.object([:])) == nil)
    }

    @Test func `texts are read as the table wants them`() {
        let settings = ModuleTestSettings(
            .library(path: "x"), options: ["port": "7", "fast": "true", "wait": "10s", "name": "7", "odd": "seven"])
        let table = [
            OptionSpec("port", .int, default: "1", help: "A port."),
            OptionSpec("fast", .bool, default: "false", help: "."),
            OptionSpec("wait", .duration, default: "1s", help: "."),
            OptionSpec("name", .string, default: "", help: "."),
            OptionSpec("odd", .int, default: "1", help: "."), OptionSpec("must", .string, default: nil, help: "."),
        ]
        let options = TrialRequest(settings, .functions, module: "", rule: nil, obstacle: nil).options(for: table)
        #expect(options == ["port": 7, "fast": true, "wait": "10s", "name": "7", "odd": "seven"])
        #expect(table.problems(options).count == 1)
        #expect(table.missing(options) == "--option must=…")
    }

    @Test func `a report counts what could have been tried`() {
        var report = ModuleTestReport()
        report.results = [
            .init(part: .functions, rule: "a", outcome: .kept),
            .init(part: .functions, rule: "b", outcome: .broken("it is late")),
            .init(part: .process, rule: "c", outcome: .skipped("no search"), isApplicable: false),
            .init(part: .process, rule: "d", outcome: .skipped("no link")),
        ]
        #expect(report.summary == "1 rules kept, 1 broken, 2 skipped")
        #expect(report.untried.map(\.rule) == ["d"])
        #expect(report.broken.map(\.line) == ["broken   b: it is late"])
        #expect(report.json["ok"] == false)
        #expect(report.json["rules"]?.arrayValue?.count == 4)
    }

    @Test func `a program has a process of its own`() {
        #expect(ModuleTestSettings(.command(["x"]), isolations: [.inProcess]).isolations == [.process])
    }
}
