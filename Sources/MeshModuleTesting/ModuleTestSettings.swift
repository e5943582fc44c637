// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// What `ModuleTest` tests, and with what.
public struct ModuleTestSettings: Sendable {
    public enum Subject: Sendable, Equatable {
        /// A module's shared library.
        case library(path: String)
        /// A program that speaks the protocol of modules, and its arguments.
        case command([String])
    }

    public var subject: Subject
    /// The options of a device. Texts are read as their kind in the module's table wants it.
    public var options: [String: JSONValue]
    /// Where the rules of a transport are tried.
    public var isolations: [ModuleIsolation]
    /// The device gives back every frame.
    public var hasEcho: Bool
    /// How long anything may take that the module owes.
    public var patience: Duration
    /// Only rules that contain one of these texts; empty: all.
    public var rules: [String]

    public init(
        _ subject: Subject, options: [String: JSONValue] = [:],
        isolations: [ModuleIsolation] = ModuleIsolation.allCases,
        hasEcho: Bool = false, patience: Duration = .seconds(30), rules: [String] = []
    ) {
        self.subject = subject
        self.options = options
        // A program has a process of its own, whatever is wished.
        if case .command = subject { self.isolations = [.process] } else { self.isolations = isolations }
        self.hasEcho = hasEcho
        self.patience = patience
        self.rules = rules
    }

    func wants(_ rule: String) -> Bool {
        rules.isEmpty || rules.contains { rule.lowercased().contains($0.lowercased()) }
    }
}

/// Which side of a module a rule is about.
public enum ModuleTestPart: String, Sendable, Hashable, CaseIterable {
    /// Its functions, as the module ABI has them.
    case functions
    /// Its links as transports of the host, with the module in the host's process.
    case inProcess = "in-process"
    /// The same with the module in a process of its own.
    case process

    init(_ isolation: ModuleIsolation) {
        switch isolation {
        case .inProcess: self = .inProcess
        case .process: self = .process
        }
    }
}
