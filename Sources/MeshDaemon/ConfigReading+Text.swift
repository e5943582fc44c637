// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshConfig

extension ConfigReading {
    /// Why a command goes on without the config: its first error, and where all of them are told.
    func refusal(_ files: [String], _ errors: [ConfigDiagnostic]? = nil) -> String {
        let errors = errors ?? diagnostics.filter { $0.severity == .error }
        let first = errors.first.map { ": \($0.rendered(showingSource: false))" } ?? ""
        let more = errors.count > 1 ? " (and \(errors.count - 1) more)" : ""
        let words = ["meshhost", "check"] + files.flatMap { ["--config", $0] }
        return "the config is not used\(first)\(more); see `\(words.joined(separator: " "))`"
    }
}

extension HostConfig {
    /// How much there is in it: `1 device, 2 shares`.
    var summary: String {
        func counted(_ count: Int, _ name: String) -> String { "\(count) \(name)\(count == 1 ? "" : "s")" }
        return "\(counted(devices.count, "device")), \(counted(shares.count, "share"))"
    }
}
