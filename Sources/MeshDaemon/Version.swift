// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshModuleHost
internal import MeshTransportAPI

/// What this program calls itself.
enum Version {
    static let text = "0.1.0"
    /// The module ABI it offers, major.minor.
    static var abi: String { ModuleABI.version }

    static var json: JSONValue {
        ["schema": "meshhost.version/1", "version": .string(text), "abi": .string(abi)]
    }
}
