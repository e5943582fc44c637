// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// One line of `meshhost modules`.
public struct ModuleStatus: Sendable, Hashable {
    /// How far a module got.
    public enum State: String, Sendable, Hashable, CaseIterable {
        /// The file is there and may be loaded; nothing of it has run.
        case found
        /// It is in the process.
        case loaded
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

    init(name: String, path: String?, state: State, reason: String? = nil) {
        self.name = name
        self.path = path
        self.state = state
        self.reason = reason
        capabilities = []
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
        let words = [
            "scan", "multilink", "pairing", "stream", "pipelined-reads", "send-without-response", "network", "adapter",
            "own-deadlines",
        ]
        capabilities = words.enumerated().filter { module.capabilities & (1 << $0.offset) != 0 }.map(\.element)
    }
}
