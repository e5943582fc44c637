// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshConfig
internal import MeshTransportAPI

/// The config and what it relies on, for `check` and for `run`.
extension ConfigSource {
    /// What there is to say of a config.
    struct Examined {
        /// Nil when the host does not start with it.
        var config: HostConfig?
        var diagnostics: [ConfigDiagnostic]
        var status: ExitStatus
    }

    func examined(
        _ reading: ConfigReading, _ catalog: ModuleCatalog, for purpose: StartExamination.Purpose
    ) -> Examined {
        var examination = StartExamination(purpose, of: reading.requirements, environment: environment)
        for device in reading.config?.devices ?? [] {
            examination.examineOptions(of: device, reading.requirements) { options throws(MeshError) in
                try catalog.factory(device.module).check(options).issues
            }
        }
        let findings = examination.findings
        let status = reading.config == nil ? .configuration : findings.status
        return Examined(
            config: status == nil ? reading.config : nil,
            diagnostics: reading.diagnostics(and: findings.map(\.diagnostic)),
            status: status ?? .ok)
    }
}
