// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// Which module a device needs.
public struct ModuleRequest: Sendable, Hashable {
    public var name: String
    /// From `[module.NAME]`, for a module outside the search path.
    public var path: String?
    /// The program that is the module, and its arguments, where it is no library.
    public var command: [String]?
    /// Where it is to run; nil: as is the rule for it.
    public var isolation: ModuleIsolation?
    /// The address space of each of its processes, in MiB; 0: no limit.
    public var memoryLimit = ConfigSchema.Module.memory.fallback
    /// The digest that its file must have, 64 hexadecimal digits in lower case; nil: any.
    public var sha256: String?
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

extension HostConfig {
    /// What is needed of the module that a device or a command calls `name`.
    public func request(forModule name: String) -> ModuleRequest {
        let module = modules.first { $0.name == name }
        var request = ModuleRequest(name: name, path: module?.path, searchPath: daemon.modulePath)
        request.command = module?.command
        request.isolation = module?.isolation
        request.sha256 = module?.sha256
        if let module { request.memoryLimit = module.memoryLimit }
        return request
    }
}
