// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// Why a module was not loaded: one line that says which file, which rule and what to do.
public struct ModuleRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// The file in question, or the module's name where no file was found.
    public var subject: String
    /// The rule that was not kept, with the value in question.
    public var rule: String
    /// What to do about it.
    public var advice: String

    init(_ subject: String, _ rule: String, advice: String) {
        self.subject = subject.singleLine
        self.rule = rule.singleLine
        self.advice = advice.singleLine
    }

    /// `subject: rule; advice`.
    public var description: String { "\(subject): \(rule); \(advice)" }

    /// The same behind words that name the module: without its name a second time.
    public func description(ofModule name: String) -> String {
        subject == "module \"\(name)\"" ? "\(rule); \(advice)" : description
    }
}

extension MeshError {
    /// The refusal as a ``MeshError/Code-swift.struct/moduleRefused``.
    public init(_ refusal: ModuleRefusal) {
        self.init(.moduleRefused, refusal.description, cause: refusal)
    }
}

extension String {
    /// Without control characters, so that what a file or a module says cannot forge a log line.
    var singleLine: String {
        String(String.UnicodeScalarView(unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
    }
}
