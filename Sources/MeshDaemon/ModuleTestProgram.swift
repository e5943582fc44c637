// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc
internal import MeshConfig
internal import MeshLoop
internal import MeshModuleHost
internal import MeshModuleTesting
internal import MeshTransportAPI

/// `meshhost module-test`.
struct ModuleTestProgram {
    let options: ModuleTestOptions
    let environment: [String: String]

    func run() -> ExitStatus {
        do {
            return try test()
        } catch let error as UsageError {
            Terminal.complain(error)
            return .usage
        } catch let error as MeshError {
            Terminal.complain("meshhost: \(error.message)")
            return HostProgram.status(of: error)
        } catch {
            Terminal.complain("meshhost: \(error)")
            return .internalError
        }
    }

    private func test() throws -> ExitStatus {
        if options.wantsList {
            list()
            return .ok
        }
        let settings = try settings()
        let test = ModuleTest(settings)
        if let module = try test.examine() {
            guard module.problems.isEmpty else {
                for problem in module.problems { Terminal.complain("meshhost: \(problem)") }
                return .configuration
            }
            say("module \(module.name) \(module.version) (\(module.vendor)), built for ABI \(module.abi)\n")
        }
        var part: ModuleTestPart?
        let report = try test.run { result in
            if part != result.part { say("\n\(Self.title(result.part))\n") }
            part = result.part
            show(result)
        }
        if options.isJSON { Terminal.write(report.json) }
        say("\n\(report.summary)\n")
        return report.broken.isEmpty && !(options.isStrict && !report.untried.isEmpty) ? .ok : .unavailable
    }

    private func say(_ text: String) {
        if !options.isJSON, !options.isQuiet { Terminal.write(text) }
    }

    private func show(_ result: ModuleTestReport.Result) {
        if options.isJSON || options.isQuiet && !result.isBroken { return }
        let notes = result.notes.map { "         \($0.shownOnOneLine)\n" }
        Terminal.write(result.line.shownOnOneLine + "\n" + notes.joined())
    }

    private static func title(_ part: ModuleTestPart) -> String {
        switch part {
        case .functions: "Its functions"
        case .inProcess: "Its links, in the host's process"
        case .process: "Its links, in a process of its own"
        }
    }

    private func list() {
        if options.isJSON {
            let rules = ModuleTest.rules.map { part, rule in
                JSONValue.object(["part": .string(part.rawValue), "rule": .string(rule)])
            }
            return Terminal.write(["schema": "meshhost.module-test/1", "rules": .array(rules)])
        }
        // Those of links are the same wherever the module runs.
        for (title, part) in [("Of a module's functions", ModuleTestPart.functions), ("Of its links", .process)] {
            Terminal.write("\(title)\n" + ModuleTest.rules.filter { $0.part == part }.map { "  \($0.rule)\n" }.joined())
        }
    }

    // MARK: What is tested

    private func settings() throws -> ModuleTestSettings {
        var subject: ModuleTestSettings.Subject
        var written: [String: JSONValue] = [:]
        switch options.subject {
        case .module(let word):
            let path = word.contains("/") || word.hasSuffix(".so") ? word : try installed(word)
            subject = .library(path: Self.absolute(path))
        case .command(let words):
            subject = .command([try Self.program(words[0], environment)] + words.dropFirst())
        case .device(let name):
            (subject, written) = try configured(name)
        case nil: throw UsageError(message: "module-test: nothing is named")
        }
        for (key, text) in options.options { written[key] = .string(text) }
        return ModuleTestSettings(
            subject, options: written, isolations: options.isolations, hasEcho: options.hasEcho,
            patience: options.patience, rules: options.rules)
    }

    private func installed(_ name: String) throws -> String {
        do throws(ModuleRefusal) {
            return try ModuleLocator().existingPath(ofModule: name)
        } catch {
            throw MeshError(error)
        }
    }

    private func configured(_ name: String) throws -> (ModuleTestSettings.Subject, [String: JSONValue]) {
        let source = ConfigSource(
            files: options.configFiles, assignments: options.assignments, environment: environment)
        let loop = EventLoop()
        let reading = source.read(ModuleCatalog(loop: loop, log: .none))
        try loop.shutDown()
        guard let config = reading.config, let device = config.devices.first(where: { $0.name == name }) else {
            throw MeshError(.configurationInvalid, "there is no device \"\(name)\" in the config; see `meshhost check`")
        }
        let written = try device.resolvedOptions(SecretSource(environment: environment))
        let request = config.request(forModule: device.module)
        if let command = request.command { return (.command(command), written) }
        if let path = request.path { return (.library(path: path), written) }
        do throws(ModuleRefusal) {
            let locator = ModuleLocator(configured: request.searchPath)
            return (.library(path: try locator.existingPath(ofModule: device.module)), written)
        } catch {
            throw MeshError(error)
        }
    }

    /// The path as the host wants it: from the root, without links.
    private static func absolute(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// A program by its path, or as the shell finds it.
    private static func program(_ word: String, _ environment: [String: String]) throws -> String {
        if word.contains("/") {
            if access(word, X_OK) == 0 { return absolute(word) }
        } else {
            for folder in (environment["PATH"] ?? "").split(separator: ":") {
                if access("\(folder)/\(word)", X_OK) == 0 { return "\(folder)/\(word)" }
            }
        }
        throw UsageError(message: "module-test: \(word): there is no such program")
    }
}
