// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshConfig

/// Where the config comes from; asked again for each reload.
struct ConfigSource: Sendable {
    var files: [String]
    var assignments: [String]
    var environment: [String: String]

    /// Reads and checks everything. Modules that the config names are loaded to check their options.
    func read(_ catalog: ModuleCatalog) -> ConfigReading {
        let input = ConfigInput.gathering(explicit: files, environment: environment, settings: assignments)
        return HostConfig.reading(input) { catalog.lookUp($0) }
    }
}
