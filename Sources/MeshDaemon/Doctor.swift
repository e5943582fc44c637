// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// What `doctor` makes of the daemon's answers. Pure.
enum Doctor {
    /// Modules that are wanted and cannot be used. Those that lie there and are not wanted do not matter.
    static func findings(modules: [JSONValue]) -> [DoctorFinding] {
        modules.compactMap { module in
            let name = module["name"]?.stringValue ?? ""
            switch module["state"]?.stringValue {
            case "loaded":
                let version = module["version"]?.stringValue ?? "", abi = module["abi"]?.stringValue ?? ""
                return DoctorFinding("modules", .ok, name, "version \(version), ABI \(abi)")
            case "refused", "missing":
                return DoctorFinding(
                    "modules", .problem, name, module["reason"]?.stringValue ?? "cannot be loaded",
                    advice: "see `meshhost modules`")
            case "quarantined":
                let last = module["last_crash"]?.stringValue.map { "; the last time it \($0)" } ?? ""
                return DoctorFinding(
                    "modules", .problem, name, "it crashed too often and is not started any more\(last)",
                    advice: "look at its log, then run `meshhost modules reset \(name)`")
            default: return nil
            }
        }
    }

    /// What is wrong with the daemon itself.
    static func findings(troubles: [JSONValue]) -> [DoctorFinding] {
        troubles.map { trouble in
            let time = DaemonQuestion.roughly(.milliseconds(trouble["for_ms"]?.intValue ?? 0))
            let about = trouble["about"]?.stringValue ?? "", message = trouble["message"]?.stringValue ?? ""
            if trouble["past"] == true {
                return DoctorFinding(
                    "daemon", .note, about, "\(message) (\(time) ago)", advice: "this note goes with the next restart")
            }
            return DoctorFinding(
                "daemon", .problem, about, "\(message) (for \(time))",
                advice:
                    "the daemon goes on and tries again by itself; `meshhost listen --type daemon` tells when it works")
        }
    }

    /// What is wrong with the links of the daemon's devices.
    static func findings(devices: [JSONValue]) -> [DoctorFinding] {
        devices.map { finding(device: $0) }
    }

    private static func finding(device: JSONValue) -> DoctorFinding {
        let name = device["name"]?.stringValue ?? ""
        func find(_ severity: Finding.Severity, _ message: String, _ advice: String? = nil) -> DoctorFinding {
            DoctorFinding("device", severity, name, message, advice: advice)
        }
        if let reason = device["disabled"]?.stringValue {
            return find(
                .problem, "cannot be used: \(reason)", "install the module, or take the device out of the config")
        }
        let state = device["state"]?.stringValue ?? ""
        let last = device["last_error"]?["message"]?.stringValue
        let failures = device["consecutive_failures"]?.intValue ?? 0
        let text = device["waiting"]?["text"]?.stringValue ?? ""
        switch device["waiting"]?["why"]?.stringValue {
        case "disconnected", "released": return find(.note, text, "`meshhost device \(name) connect` brings it back")
        case "blocked":
            return find(.problem, text, "mend that, then `meshhost device \(name) connect`")
        case "exhausted": return find(.problem, text, "`meshhost device \(name) connect` tries again")
        case "contended":
            return find(.problem, text, "end the other host's connection, then `meshhost device \(name) reconnect`")
        case "breaker-open":
            return find(.problem, text, "see that the device is on and near; it is tried again now and then")
        case "adapter":
            // The next step stands behind the first semicolon of an error.
            let parts = last?.split(separator: "; ", maxSplits: 1).map(String.init) ?? []
            return find(
                .problem, parts.first.map { "\(text): \($0)" } ?? text,
                parts.count > 1 ? parts[1] : "switch the adapter or the network on, or plug the device in")
        case "backoff" where failures > 1:
            return find(.problem, text, "see that the device is on and near; it is tried again")
        default: break
        }
        if state == DeviceState.connecting.rawValue, failures > 1, let last {
            return find(.problem, "is being connected, after: \(last)", "see that the device is on and near")
        }
        return find(.ok, state)
    }

    /// Findings for people: what was looked at and found, and the next step below.
    static func text(_ findings: [DoctorFinding]) -> String {
        let areas = findings.map(\.area.count).max() ?? 0
        return findings.map { entry in
            let finding = entry.finding
            let head = pad(finding.severity.rawValue, 7) + "  " + pad(entry.area, areas) + "  "
            let line = head + "\(finding.subject): \(finding.message)".shownOnOneLine + "\n"
            guard let advice = finding.advice else { return line }
            return line + String(repeating: " ", count: head.count) + "→ \(advice.shownOnOneLine)\n"
        }.joined()
    }

    private static func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}

extension String {
    /// Without control characters.
    var shownOnOneLine: String {
        String(
            String.UnicodeScalarView(unicodeScalars.map { $0.properties.generalCategory == .control ? "\u{FFFD}" : $0 })
        )
    }
}
