// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Where a module runs.
public enum ModuleIsolation: String, Sendable, Hashable, CaseIterable {
    /// In the daemon's process, with all its rights.
    case inProcess = "in-process"
    /// In processes of its own.
    case process
}
