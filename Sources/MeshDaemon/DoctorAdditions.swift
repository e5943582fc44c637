// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshConfig
internal import MeshTransportAPI

/// Devices that a config has and the running daemon has not: how `doctor` looks at them without disturbing the daemon. Pure.
///
/// Whatever looks at things and takes none of them is asked in the process of the command. A controller is opened by who
/// uses it alone, so the daemon is asked for that; and a module in a process of its own may have its hardware for itself, so it
/// has no second process while the daemon has one.
struct DoctorAdditions {
    /// What can be said already.
    private(set) var findings: [DoctorFinding] = []
    /// Devices whose modules are asked here.
    private(set) var examinedHere: Set<String> = []
    /// Controllers that the daemon is asked for, each once.
    private(set) var controllers: [String] = []

    static let controllerModule = "hci"

    init(_ configured: [DeviceConfig], daemonDevices: [JSONValue], daemonModules: [JSONValue]) {
        let known = Set(daemonDevices.compactMap { $0["name"]?.stringValue })
        let running = Set(
            daemonModules.filter { $0["pids"]?.arrayValue?.isEmpty == false }.compactMap { $0["name"]?.stringValue })
        let added = configured.filter { !known.contains($0.name) }
        guard !added.isEmpty else { return }
        for device in added {
            if let reason = device.disabledReason {
                findings.append(
                    DoctorFinding(
                        "device", .problem, device.name, "cannot be used: \(reason)",
                        advice: "install the module, or take the device out of the config"))
            } else if device.module == Self.controllerModule, let controller = device.controller {
                if !controllers.contains(controller) { controllers.append(controller) }
            } else if running.contains(device.module) {
                findings.append(
                    DoctorFinding(
                        "device", .note, device.name,
                        "was not looked at: module \"\(device.module)\" is in use by the daemon",
                        advice: "`meshhost reload`, then `meshhost doctor`"))
            } else {
                examinedHere.insert(device.name)
            }
        }
        findings.insert(
            DoctorFinding(
                "daemon", .note, "config",
                "the daemon runs without what this config adds: \(added.map(\.name).joined(separator: ", "))",
                advice: "`meshhost reload`"), at: 0)
    }

    /// What the daemon has told of a controller.
    static func finding(on controller: String, _ answer: Result<JSONValue, MeshError>) -> DoctorFinding {
        switch answer {
        case .success(let report):
            let version = report["adapter"]?["hci_version_name"]?.stringValue.map { ": Bluetooth \($0)" } ?? ""
            return DoctorFinding(controllerModule, .ok, controller, "answers\(version)")
        case .failure(let error):
            // The next step stands behind the first semicolon of an error.
            let parts = error.message.split(separator: "; ", maxSplits: 1).map(String.init)
            return DoctorFinding(
                controllerModule, .problem, controller, parts.first ?? "", advice: parts.count > 1 ? parts[1] : nil)
        }
    }
}

extension DeviceConfig {
    /// A controller that has to be opened to be looked at; nil for an adapter, of which the kernel tells.
    fileprivate var controller: String? {
        text(ofOption: "controller").flatMap { $0.contains(":") ? $0 : nil }
    }
}
