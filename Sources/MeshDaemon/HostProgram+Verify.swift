// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshConfig
internal import MeshModuleHost
internal import MeshTransportAPI

/// `modules verify`: every rule of trust, applied to modules' files. Nothing is loaded, and no daemon is asked.
extension HostProgram {
    func verifyModules(_ subjects: [String]) -> ExitStatus {
        let input = ConfigInput.gathering(
            explicit: self.options.configFiles, environment: environment, settings: options.assignments)
        let reading = HostConfig.reading(input) { _ in .unavailable(reason: "not looked for") }
        // That no module is there says nothing here; what else is wrong may be the pin.
        let errors = reading.diagnostics.filter { $0.severity == .error && $0.code != .moduleUnavailable }
        let inspections = Verification(reading).inspections(subjects)
        if options.isJSON {
            Terminal.write(["schema": "meshhost.verify/1", "modules": .array(inspections.map(\.json))])
        } else {
            let shown = options.isQuiet ? inspections.filter { !$0.isTrusted } : inspections
            Terminal.write(shown.map(\.text).joined(separator: "\n"))
        }
        if !errors.isEmpty { Terminal.complain("meshhost: \(reading.refusal(options.configFiles, errors))") }
        return errors.isEmpty && inspections.allSatisfy(\.isTrusted) ? .ok : .configuration
    }
}

/// Which files `modules verify` looks at.
private struct Verification {
    let requests: [ModuleRequest]
    let locator: ModuleLocator

    init(_ reading: ConfigReading) {
        requests = reading.modules
        locator = ModuleLocator(configured: reading.modulePath)
    }

    /// Of these names and files; of none: of all that the config names, and all that lie in the searched folders.
    func inspections(_ subjects: [String]) -> [ModuleInspection] {
        guard subjects.isEmpty else { return subjects.map { inspection(of: $0) } }
        let installed = locator.installed().map(\.name).filter { name in !requests.contains { $0.name == name } }
        return (requests.map(\.name) + installed).sorted().map { inspection(ofModule: $0) }
    }

    private func inspection(of subject: String) -> ModuleInspection {
        guard subject.contains("/") || subject.hasSuffix(".so") else { return inspection(ofModule: subject) }
        // A file that the config names is judged as the config wants it.
        let request = requests.first { ($0.command?.first ?? file(of: $0)) == subject }
        if let request { return inspection(ofModule: request.name) }
        return ModuleInspection(library: subject)
    }

    private func inspection(ofModule name: String) -> ModuleInspection {
        let request = requests.first { $0.name == name } ?? ModuleRequest(name: name)
        if let program = request.command?.first {
            return ModuleInspection(program: program, name: name, pin: request.pin)
        }
        guard let path = file(of: request) else { return ModuleInspection(missing: name, locator: locator) }
        return ModuleInspection(library: path, name: name, pin: request.pin)
    }

    private func file(of request: ModuleRequest) -> String? {
        request.path ?? locator.path(ofModule: request.name)
    }
}

extension ModuleInspection {
    /// One block for people, with the line that pins the file where none does.
    var text: String {
        var lines = [name.map { $0 == path ? path : "\($0): \(path)" } ?? path]
        for finding in findings {
            let (verdict, check) = (finding.verdict.rawValue, finding.check.rawValue)
            lines.append("  \(verdict.padded(to: 9))\(check.padded(to: 11))\(finding.text)")
            if let advice = finding.advice { lines.append("  \("".padded(to: 20))\(advice)") }
        }
        lines.append(isTrusted ? "  may be loaded" : "  is refused")
        if isTrusted, !isPinned, let digest {
            lines.append("  to pin it, below [module.\(name ?? "NAME")]: sha256 = \"\(digest)\"")
        } else if let digest {
            lines.append("  sha256 = \"\(digest)\"")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    var json: JSONValue {
        [
            "name": name.map { .string($0) } ?? .null, "path": .string(path), "ok": .bool(isTrusted),
            "pinned": .bool(isPinned), "sha256": digest.map { .string($0.description) } ?? .null,
            "findings": .array(
                findings.map { finding in
                    [
                        "check": .string(finding.check.rawValue), "verdict": .string(finding.verdict.rawValue),
                        "text": .string(finding.text), "advice": finding.advice.map { .string($0) } ?? .null,
                    ]
                }),
        ]
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
