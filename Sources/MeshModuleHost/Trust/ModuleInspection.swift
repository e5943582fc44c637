// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import Glibc

/// Every rule of trust applied to one module's file, and what the file says of itself; nothing of it is loaded or run.
///
/// Loading stops at the first rule that is not kept. This goes on as far as the file allows, so that a person sees all of
/// them at once.
public struct ModuleInspection: Sendable, Hashable {
    /// What is looked at, in this order.
    public enum Check: String, Sendable, Hashable, CaseIterable {
        /// Whether it is there, regular and no symbolic link.
        case file
        case owner
        case mode
        /// Each folder on the way to it.
        case folders
        /// Whether it is the file that it is pinned to.
        case sha256
        /// Whether it is a library for this machine.
        case machine
        /// Whether the C library here is new enough for it.
        case libraries
        /// Whether it shows its entry, and nothing else.
        case exports
    }

    /// How a check went.
    public enum Verdict: String, Sendable, Hashable, CaseIterable {
        case ok
        /// It is loaded all the same.
        case warning
        /// It is refused.
        case refused
    }

    /// What one check came to.
    public struct Finding: Sendable, Hashable {
        public var check: Check
        public var verdict: Verdict
        /// What was found.
        public var text: String
        /// What to do about it, where something is to be done.
        public var advice: String?
    }

    /// What the config calls it; nil for a file that no config names.
    public var name: String?
    /// The file, or what was said instead of one.
    public var path: String
    public private(set) var findings: [Finding] = []
    /// The digest of the file as it lies there; nil where it cannot be read.
    public private(set) var digest: ModuleDigest?
    /// The file is pinned, to this digest or another one.
    public private(set) var isPinned: Bool

    /// Whether it would be loaded, as far as can be said without loading it.
    public var isTrusted: Bool { findings.allSatisfy { $0.verdict != .refused } }

    private init(_ name: String?, _ path: String, pin: ModuleDigest?) {
        self.name = name
        self.path = path.singleLine
        isPinned = pin != nil
    }

    /// Whose files and folders may be.
    private static var owners: String { geteuid() == 0 ? "root" : "root and uid \(geteuid())" }

    // MARK: Kinds of modules

    /// Looks at a shared library.
    public init(library path: String, name: String? = nil, pin: ModuleDigest? = nil) {
        self.init(name, path, pin: pin)
        guard let path = attempt(.file, { () throws(ModuleRefusal) in try ModuleFile.absolute(path) }) else { return }
        self.path = path.singleLine
        let real = attempt(.folders) { () throws(ModuleRefusal) in try ModuleFile.checkFolders(of: path) }
        inspect(library: real ?? path, calling: path, pin: pin)
        if real != nil { add(.folders, "only \(Self.owners) may change them") }
        findings.sort { Check.allCases.firstIndex(of: $0.check)! < Check.allCases.firstIndex(of: $1.check)! }
    }

    /// Looks at the program that is a module.
    public init(program path: String, name: String? = nil, pin: ModuleDigest? = nil) {
        self.init(name, path, pin: pin)
        let version = attempt(.file) { () throws(ModuleRefusal) in try ModuleFile.checkProgram(path) }
        guard version != nil else { return }
        add(.file, "a program that, with its folders, only \(Self.owners) may change")
        if let digest = attempt(.sha256, { () throws(ModuleRefusal) in try ModuleFile.digest(ofProgram: path) }) {
            compare(digest, pin)
        }
    }

    /// What is known of a module whose file was not found.
    public init(missing name: String, locator: ModuleLocator) {
        self.init(name, name, pin: nil)
        add(locator.refusal(ofModule: name), to: .file)
    }

    private mutating func inspect(library real: String, calling path: String, pin: ModuleDigest?) {
        do throws(ModuleRefusal) {
            let file = try ModuleFile(opening: real, path: path)
            try file.checkKind()
            inspect(file, pin: pin)
        } catch {
            add(error, to: .file)
        }
    }

    private mutating func inspect(_ file: borrowing ModuleFile, pin: ModuleDigest?) {
        add(.file, "a regular file of \(file.size) bytes")
        if attempt(.owner, file, { file throws(ModuleRefusal) in try file.checkOwner() }) != nil {
            add(.owner, "uid \(file.status.st_uid)")
        }
        if attempt(.mode, file, { file throws(ModuleRefusal) in try file.checkMode() }) != nil {
            add(.mode, ModuleFile.octal(file.status.st_mode))
        }
        if let digest = attempt(.sha256, file, { file throws(ModuleRefusal) in try file.digest() }) {
            compare(digest, pin)
        }
        guard let dynamics = attempt(.machine, file, { file throws(ModuleRefusal) in try file.dynamics() }) else {
            return
        }
        add(.machine, "a shared object for \(ELFHeader.machine)")
        if attempt(.libraries, file, { file throws(ModuleRefusal) in try file.checkGlibc(dynamics) }) != nil {
            add(.libraries, Self.needs(of: dynamics))
        }
        judge(exports: dynamics.exports())
    }

    // MARK: Judging

    private mutating func compare(_ digest: ModuleDigest, _ pin: ModuleDigest?) {
        self.digest = digest
        guard let pin else { return add(.sha256, "not pinned") }
        if attempt(.sha256, { [path] () throws(ModuleRefusal) in try ModuleFile.check(digest, pin, of: path) }) != nil {
            add(.sha256, "the file that it is pinned to")
        }
    }

    private static func needs(of dynamics: ELFDynamics) -> String {
        let glibc = dynamics.glibc.map { "glibc \($0) or newer" } ?? "no version of glibc"
        let here = GlibcVersion.own.map { ", here is \($0)" } ?? ""
        return "needs \(glibc)\(here); \(dynamics.libraries.joined(separator: ", "))"
    }

    private mutating func judge(exports: [String]?) {
        let entry = MH_ENTRY_SYMBOL
        guard let exports else {
            return add(
                ModuleRefusal(path, "has no symbol table that can be read", advice: "install the module again"),
                to: .exports)
        }
        guard exports.contains(entry) else {
            return add(
                ModuleRefusal(
                    path, "does not export \(entry)",
                    advice:
                        "it is no meshhost module for ABI \(MH_ABI_MAJOR), or its vendor forgot to export the symbol"),
                to: .exports)
        }
        let others = exports.filter { $0 != entry }
        guard let first = others.first else { return add(.exports, "\(entry) alone") }
        findings.append(
            Finding(
                check: .exports, verdict: .warning,
                text: "\(entry), and \(others.count) more, such as \(first.prefix(80))".singleLine,
                advice: "link it with the SDK's module-exports.map: two modules must not see each other's symbols"))
    }

    private mutating func add(_ check: Check, _ text: String) {
        findings.append(Finding(check: check, verdict: .ok, text: text.singleLine, advice: nil))
    }

    private mutating func add(_ refusal: ModuleRefusal, to check: Check) {
        findings.append(Finding(check: check, verdict: .refused, text: refusal.rule, advice: refusal.advice))
    }

    /// The result of a rule; where it is not kept that is noted, and there is none.
    private mutating func attempt<Result>(
        _ check: Check, _ rule: () throws(ModuleRefusal) -> Result
    ) -> Result? {
        do throws(ModuleRefusal) {
            return try rule()
        } catch {
            add(error, to: check)
            return nil
        }
    }
    /// The same for a rule of an open file. It is handed over, since a closure cannot hold what may not be copied.
    private mutating func attempt<Result>(
        _ check: Check, _ file: borrowing ModuleFile, _ rule: (borrowing ModuleFile) throws(ModuleRefusal) -> Result
    ) -> Result? {
        do throws(ModuleRefusal) {
            return try rule(file)
        } catch {
            add(error, to: check)
            return nil
        }
    }
}
