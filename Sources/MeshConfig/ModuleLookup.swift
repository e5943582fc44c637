// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// Which module a device needs.
public struct ModuleRequest: Sendable, Hashable {
    public var name: String
    /// From `[module.NAME]`, for a module outside the search path.
    public var path: String?
    /// `module_path` of `[daemon]`; empty means the built-in search path.
    public var searchPath: [String]

    public init(name: String, path: String? = nil, searchPath: [String] = []) {
        self.name = name
        self.path = path
        self.searchPath = searchPath
    }
}

/// What a search for a module gives. This library never loads one: the caller does, or has a fixed table.
public enum ModuleLookup: Sendable {
    case found(any TransportFactory)
    /// `reason` continues "module … is not available; ", such as `searched /usr/lib/meshhost`.
    case unavailable(reason: String)
}
