// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CProcess
internal import FoundationEssentials
internal import Glibc
internal import MeshWire

/// The program's other side: what runs in the process of a module. It gives up what a module has no use for, then loads the
/// module and hosts it, or becomes the program that is the module.
public enum ModuleRunner {
    /// The first word of its command line.
    public static var word: String { ModuleLaunch.word }

    /// Does what the words behind ``word`` say. Returns an exit status, if it returns.
    public static func run(_ words: [String]) -> Int32 {
        guard let command = RunnerCommand(words) else {
            complain("this command is meshhost's own, for the processes of modules")
            return 64
        }
        let failure = confine(command)
        if failure != 0 {
            complain("cannot be confined: \(String(cString: strerror(failure)))")
            return 71
        }
        switch command.program {
        case .library(let name, let path): return RunnerSession.run(name, path, pin: command.pin)
        case .command(let words): return become(words, pin: command.pin)
        }
    }

    /// The limits of a module's process. 0, or an errno.
    private static func confine(_ command: RunnerCommand) -> Int32 {
        let failures = [meshhost_die_with_parent(), meshhost_give_up_privileges()]
        if let failure = failures.first(where: { $0 != 0 }) { return failure }
        // The parent ended before it could be watched.
        if getppid() != command.parent { return ESRCH }
        _ = meshhost_close_from(UInt32(ModuleLaunch.descriptor) + 1)
        // Of its own, so that a Ctrl-C in the daemon's terminal does not end modules before their links.
        _ = setsid()
        limit(__rlimit_resource_t(RLIMIT_CORE.rawValue), 0)
        limit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), 1_024)
        if command.memoryLimit > 0 {
            limit(__rlimit_resource_t(RLIMIT_AS.rawValue), rlim_t(command.memoryLimit) << 20)
        }
        return chdir("/") == 0 ? 0 : errno
    }

    private static func limit(_ resource: __rlimit_resource_t, _ value: rlim_t) {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return }
        limit.rlim_max = min(value, limit.rlim_max)
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
    }

    /// Becomes another program, with what is left of this one's rights. It was looked at when the config was read; that may
    /// be long ago.
    private static func become(_ words: [String], pin: ModuleDigest?) -> Int32 {
        do throws(ModuleRefusal) {
            _ = try ModuleFile.checkProgram(words[0], pin: pin)
        } catch {
            RunnerSession.post(error)
            return 78
        }
        signal(SIGPIPE, SIG_DFL)
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        execv(words[0], &arguments)
        complain("\(words[0]): \(String(cString: strerror(errno)))")
        return 126
    }

    private static func complain(_ text: String) {
        let bytes = Array("meshhost module-runner: \(text)\n".utf8)
        _ = bytes.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
