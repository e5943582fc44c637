// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// One line of `meshhost modules`.
public struct ModuleStatus: Sendable, Hashable {
    /// How far a module got.
    public enum State: String, Sendable, Hashable, CaseIterable {
        /// The file is there and may be loaded; nothing of it has run.
        case found
        /// It can be used: it is in this process, or was asked in one of its own.
        case loaded
        /// Its processes crashed too often; none is started until a person says so.
        case quarantined
        /// It must not or cannot be loaded; the reason says why.
        case refused
        /// There is no such file.
        case missing
    }

    public var name: String
    /// The file, where there is one.
    public var path: String?
    public var state: State
    /// One line, for `refused` and `missing`.
    public var reason: String?
    /// The rest is known once it is loaded.
    public var version: String?
    public var vendor: String?
    public var license: String?
    /// The ABI it was built with, such as `1.0`.
    public var abi: String?
    /// Words such as `scan` and `multilink`.
    public var capabilities: [String]
    /// Where it runs.
    public var isolation: ModuleIsolation?
    /// Its processes.
    public var pids: [Int32] = []
    /// How often a process ended without being asked to, and how the last one did.
    public var crashes = 0
    public var lastCrash: String?
    /// How often one was started after that.
    public var restarts = 0

    init(name: String, path: String?, state: State, reason: String? = nil) {
        self.name = name
        self.path = path
        self.state = state
        self.reason = reason
        capabilities = []
    }

    /// The status of a module that cannot be used; without a path it was not found.
    public init(_ name: String, path: String?, refusal: ModuleRefusal) {
        self.init(name: name, path: path, state: path == nil ? .missing : .refused, reason: refusal.description)
    }

    /// The status of a module that is in the process.
    public init(_ module: LoadedModule) {
        name = module.descriptor.name
        path = module.path
        state = .loaded
        version = module.descriptor.version
        vendor = module.descriptor.vendor
        license = module.descriptor.license
        abi = module.abi
        capabilities = Self.words(module.capabilities)
        isolation = .inProcess
    }

    /// The status of a module in processes of its own. On the loop's thread.
    public init(_ module: IsolatedModule) {
        let supervisor = module.supervisor
        name = module.descriptor.name
        path = module.launch.path
        state = supervisor.isQuarantined ? .quarantined : .loaded
        version = module.descriptor.version
        vendor = module.descriptor.vendor
        license = module.descriptor.license
        abi = module.abi
        capabilities = Self.words(module.descriptor.capabilities.rawValue)
        isolation = .process
        pids = supervisor.pids
        restarts = supervisor.restarts
        crashes = supervisor.crashes
        lastCrash = supervisor.lastCrash
    }

    private static func words(_ bits: UInt64) -> [String] {
        ModuleHello.capabilities.enumerated().filter { bits & (1 << UInt64($0.offset)) != 0 }.map(\.element)
    }
}
