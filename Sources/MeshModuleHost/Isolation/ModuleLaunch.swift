// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc

/// How a process is started that runs a module.
public struct ModuleLaunch: Sendable, Hashable {
    /// What runs in it.
    public enum Program: Sendable, Hashable {
        /// A module's shared library, in meshhost's own program.
        case library(name: String, path: String)
        /// A program that speaks the protocol itself, and its arguments.
        case command([String])
    }

    public var program: Program
    /// The only file that may run: the library or the program; nil: any.
    public var pin: ModuleDigest?
    /// How much address space it may have, in MiB; nil: no limit.
    public var memoryLimit: Int?
    /// The program that has ``ModuleRunner`` in it, by default the one that runs.
    public var runner: String

    public init(
        _ program: Program, pin: ModuleDigest? = nil, memoryLimit: Int? = nil, runner: String = "/proc/self/exe"
    ) {
        self.program = program
        self.pin = pin
        self.memoryLimit = memoryLimit
        self.runner = runner
    }

    /// The file that says what runs.
    var path: String {
        switch program {
        case .library(_, let path): path
        case .command(let words): words.first ?? ""
        }
    }

    /// The command line of the runner. It is told its parent so that it notices one that has ended already.
    var arguments: [String] {
        let limits = ["\(getpid())", "\(memoryLimit ?? 0)", pin?.description ?? "-"]
        switch program {
        case .library(let name, let path): return [runner, Self.word] + limits + ["load", name, path]
        case .command(let words): return [runner, Self.word] + limits + ["exec"] + words
        }
    }

    /// The runner's command.
    static let word = "module-runner"
    /// The descriptor of the socket in the child.
    static let descriptor: Int32 = 3

    /// What the child gets of the host's environment: nothing that could hold a secret.
    static var environment: [String: String] {
        let names = [
            "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "DBUS_SYSTEM_BUS_ADDRESS",
        ]
        var environment = ProcessInfo.processInfo.environment.filter { names.contains($0.key) }
        // A Swift program that crashes would go on for seconds to tell where.
        environment["SWIFT_BACKTRACE"] = "enable=no"
        environment["MESHHOST_SOCKET"] = "\(descriptor)"
        return environment
    }
}

/// What the words behind `module-runner` say.
struct RunnerCommand {
    var parent: Int32
    /// MiB; 0: no limit.
    var memoryLimit: Int
    /// Nil: any file.
    var pin: ModuleDigest?
    var program: ModuleLaunch.Program

    init?(_ words: [String]) {
        guard words.count >= 5, let parent = Int32(words[0]), let limit = Int(words[1]), limit >= 0 else { return nil }
        self.parent = parent
        memoryLimit = limit
        pin = ModuleDigest(words[2])
        // A pin that cannot be read must not become none.
        if pin == nil, words[2] != "-" { return nil }
        switch words[3] {
        case "load" where words.count == 6: program = .library(name: words[4], path: words[5])
        case "exec": program = .command(Array(words[4...]))
        default: return nil
        }
    }
}
