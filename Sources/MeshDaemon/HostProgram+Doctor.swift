// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshConfig
internal import MeshTransportAPI

/// `doctor`: looks at config, daemon, modules, what modules say of what links go through, and devices.
extension HostProgram {
    func runDoctor() -> ExitStatus {
        let reading = withCatalog { source.read($0) }
        var findings = findings(of: reading)
        do throws(MeshError) {
            if var client = try daemon() {
                findings += try daemonFindings(&client, reading.config)
            } else {
                findings.append(
                    DoctorFinding(
                        "daemon", .note, "meshhost", "no daemon runs on \(try controlSocket())",
                        advice:
                            "start it (`systemctl start meshhost` or `meshhost run`), or name its socket with --control"
                    ))
                findings += try localFindings()
            }
        } catch {
            let advice =
                switch error.code {
                case .permissionDenied: "run doctor as the daemon's user"
                case .configurationInvalid: "name the config of the daemon, or its socket with --control"
                default: "look at the daemon's log"
                }
            findings.append(DoctorFinding("daemon", .problem, "meshhost", error.message, advice: advice))
        }
        if options.isJSON {
            Terminal.write(DoctorFinding.document("meshhost.doctor/1", findings))
        } else {
            let shown = options.isQuiet ? findings.filter { $0.finding.severity == .problem } : findings
            Terminal.write(Doctor.text(shown))
        }
        return DoctorFinding.isFine(findings) ? .ok : .unavailable
    }

    private func findings(of reading: ConfigReading) -> [DoctorFinding] {
        var findings: [DoctorFinding] = []
        if let config = reading.config {
            findings.append(
                DoctorFinding(
                    "config", .ok, "config", config.summary))
        }
        for diagnostic in reading.diagnostics {
            let isError = diagnostic.severity == .error
            findings.append(
                DoctorFinding(
                    "config", isError ? .problem : .note, "config", diagnostic.rendered(showingSource: false),
                    advice: "`meshhost check` shows the place"))
        }
        return findings
    }

    /// The daemon looks with the config it runs, which need not be `config`: what that adds is looked at from here.
    private func daemonFindings(
        _ client: inout ControlClient, _ config: HostConfig?
    ) throws(MeshError) -> [DoctorFinding] {
        let version = try client.ask("version")["version"]?.stringValue ?? ""
        var findings = [DoctorFinding("daemon", .ok, "meshhost", "version \(version) runs on \(try controlSocket())")]
        // A daemon of an older version, which was not restarted after an update, cannot say.
        let troubles = (try? client.ask("status"))?["troubles"]?.arrayValue ?? []
        findings += Doctor.findings(troubles: troubles)
        let modules = try client.ask("modules")["modules"]?.arrayValue ?? []
        findings += Doctor.findings(modules: modules)
        let examined = try client.ask("examine")["findings"]?.arrayValue ?? []
        findings += examined.compactMap { DoctorFinding($0) }
        let devices = try client.ask("devices")["devices"]?.arrayValue ?? []
        let additions = DoctorAdditions(config?.devices ?? [], daemonDevices: devices, daemonModules: modules)
        findings += additions.findings
        for controller in additions.controllers {
            findings.append(DoctorAdditions.finding(on: controller, Self.describe(controller, &client)))
        }
        if !additions.examinedHere.isEmpty {
            let names = additions.examinedHere
            let here = try locally { (host: LocalHost) throws(MeshError) in await host.examine(devices: names) }
            findings += here.filter { !findings.contains($0) }
        }
        return findings + Doctor.findings(devices: devices)
    }

    private static func describe(
        _ controller: String, _ client: inout ControlClient
    ) -> Result<JSONValue, MeshError> {
        do throws(MeshError) {
            return .success(
                try client.ask(
                    "describe",
                    ["module": .string(DoctorAdditions.controllerModule), "adapter": .string(controller)]))
        } catch {
            return .failure(error)
        }
    }

    private func localFindings() throws(MeshError) -> [DoctorFinding] {
        let statuses = withCatalog { catalog in
            let config = source.read(catalog).config
            return catalog.statuses(searchPath: config?.daemon.modulePath ?? [])
        }
        return try Doctor.findings(modules: statuses.map(\.json))
            + locally { (host: LocalHost) throws(MeshError) in await host.examine() }
    }
}
