// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshDaemon

@Suite struct ModuleTestOptionsTests {
    private static func parse(_ line: String) throws -> ModuleTestOptions {
        guard case .moduleTest(let options) = try HostCommandTests.parse("module-test \(line)").0 else {
            throw UsageError(message: "another command")
        }
        return options
    }

    @Test func `a library is named with the options of a device`() throws {
        let options = try Self.parse("acme.so --option port=7 -o name=a=b --peer echo --patience=2m --strict --json")
        #expect(options.subject == .module("acme.so"))
        #expect(options.options == ["port": "7", "name": "a=b"])
        #expect(options.hasEcho && options.isStrict && options.isJSON && !options.isQuiet)
        #expect(options.patience == .seconds(120))
        #expect(options.isolations == ModuleIsolation.allCases)
    }

    @Test func `what stands behind two dashes is another program's`() throws {
        let options = try Self.parse("-o port=7 -- ./acme.py --json -q")
        #expect(options.subject == .command(["./acme.py", "--json", "-q"]))
        #expect(!options.isJSON)
    }

    @Test func `a configured device brings its module and its options`() throws {
        let options = try Self.parse("--device roof -c meshhost.toml --isolation process --rule silent -q")
        #expect(options.subject == .device("roof"))
        #expect(options.configFiles == ["meshhost.toml"])
        #expect(options.isolations == [.process])
        #expect(options.rules == ["silent"])
    }

    @Test func `a list needs no module`() throws {
        #expect(try Self.parse("--list --json").wantsList)
    }

    @Test(arguments: [
        ("", "module-test: say `meshhost module-test MODULE.so`"),
        ("a.so b.so", "module-test: say `meshhost module-test MODULE.so`"),
        ("a.so -- b", "module-test: say `meshhost module-test MODULE.so`"),
        ("--", "module-test: say `meshhost module-test MODULE.so`"),
        ("a.so --option port", "--option port: write KEY=VALUE"),
        ("a.so --option", "--option needs a value: --option KEY=VALUE"),
        ("a.so --peer mirror", "--peer mirror: say --peer echo"),
        ("a.so --patience soon", "--patience soon: not a duration"),
        ("a.so --isolation none", "--isolation none: say in-process, process or both"),
        ("a.so --rule xyzzy", "--rule xyzzy: no rule contains that"),
        ("--list a.so", "module-test --list shows all rules: it takes no a.so"),
        ("--list --strict", "module-test --list shows all rules: it takes no --strict"),
        ("a.so --set a.b=c", "module-test: --set needs --device"),
        ("a.so -c x.toml", "module-test: --config needs --device"),
        ("a.so --optoin a=b", "module-test has no --optoin; did you mean --option?"),
    ])
    func `a mistake is named, with what to type`(line: String, message: String) {
        let error = #expect(throws: UsageError.self) { try Self.parse(line) }
        #expect(error?.message.hasPrefix(message) == true, "\(error?.message ?? "")")
    }
}
