// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import MeshTransportAPI
import Testing

@testable import MeshDaemon

struct DoctorAdditionsTests {
    private func device(_ name: String, _ module: String, controller: String? = nil) -> DeviceConfig {
        var device = DeviceConfig(name: name, module: module)
        if let controller { device.options["controller"] = .value(.string(controller)) }
        return device
    }

    private let modules: [JSONValue] = [
        ["name": "serial", "pids": []], ["name": "acme", "pids": [12]], ["name": "hci", "pids": []],
    ]

    @Test func `there is nothing to say of a config that adds nothing`() {
        let additions = DoctorAdditions(
            [device("roof", "serial")], daemonDevices: [["name": "roof"], ["name": "hill"]], daemonModules: modules)
        #expect(additions.findings.isEmpty && additions.examinedHere.isEmpty && additions.controllers.isEmpty)
    }

    @Test func `what takes nothing is looked at here, a controller by the daemon, a module that it runs not twice`() {
        var pager = device("pager", "lora")
        pager.disabledReason = "it is not installed"
        let additions = DoctorAdditions(
            [
                device("roof", "serial"), device("attic", "serial"), device("mast", "acme"), pager,
                device("a", "hci", controller: "unix:/run/hci0"), device("b", "hci", controller: "unix:/run/hci0"),
                device("c", "hci", controller: "hci1"),
            ], daemonDevices: [["name": "roof"]], daemonModules: modules)
        #expect(additions.examinedHere == ["attic", "c"])
        #expect(additions.controllers == ["unix:/run/hci0"])
        #expect(additions.findings.map(\.finding.subject) == ["config", "mast", "pager"])
        #expect(additions.findings.map(\.finding.severity) == [.note, .note, .problem])
        #expect(additions.findings[0].finding.message.hasSuffix(": attic, mast, pager, a, b, c"))
    }

    @Test func `a controller answers, or the error says what to do`() {
        let fine = DoctorAdditions.finding(on: "hci1", .success(["adapter": ["hci_version_name": "5.2"]]))
        #expect(fine == DoctorFinding("hci", .ok, "hci1", "answers: Bluetooth 5.2"))
        let wrong = DoctorAdditions.finding(
            on: "hci1", .failure(MeshError(.adapterUnavailable, "hci1 is switched on; switch it off; or not")))
        #expect(
            wrong == DoctorFinding("hci", .problem, "hci1", "hci1 is switched on", advice: "switch it off; or not"))
    }
}
