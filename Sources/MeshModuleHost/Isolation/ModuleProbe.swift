// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CProcess
internal import FoundationEssentials
internal import Glibc
internal import MeshLoop
internal import MeshTransportAPI
internal import MeshWire

/// A process that is started only to be asked what it is, or what it thinks of options: before there is a loop that turns, or
/// on a thread beside it, so every wait is a blocking one with a deadline. Its end ends the process.
///
/// Nothing of the module has been started then: it may be killed at any time.
struct ModuleProbe: ~Copyable {
    /// How long a process may take for each answer.
    private static let patience: Duration = .seconds(3)

    private let launch: ModuleLaunch
    private let pid: pid_t
    private let socket: Int32
    private let errors: Int32
    private var parts = ModuleDocumentAssembler()

    deinit {
        // Not reaped yet, so the number is still its own.
        kill(pid, SIGKILL)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        close(socket)
        close(errors)
    }

    /// Starts the process.
    init(_ launch: ModuleLaunch) throws(ModuleRefusal) {
        func refusal(_ code: Int32) -> ModuleRefusal {
            ModuleRefusal(
                launch.path, "no process can be started for it (\(String(cString: strerror(code))))",
                advice: "look at the limits of the daemon's user")
        }
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw refusal(errno) }
        var pipe: [Int32] = [-1, -1]
        let failure = meshhost_pipe(&pipe)
        guard failure == 0 else {
            for end in ends { close(end) }
            throw refusal(failure)
        }
        _ = fcntl(pipe[0], F_SETFL, O_NONBLOCK)
        let (pid, status) = Self.spawn(launch, socket: ends[1], errors: pipe[1])
        close(ends[1])
        close(pipe[1])
        guard status == 0 else {
            close(ends[0])
            close(pipe[0])
            throw refusal(status)
        }
        self.launch = launch
        self.pid = pid
        socket = ends[0]
        errors = pipe[0]
    }

    private static func spawn(_ launch: ModuleLaunch, socket: Int32, errors: Int32) -> (pid: pid_t, status: Int32) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_RDWR, 0)
        posix_spawn_file_actions_adddup2(&actions, errors, 2)
        posix_spawn_file_actions_adddup2(&actions, socket, ModuleLaunch.descriptor)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        var all = sigset_t()
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var arguments: [UnsafeMutablePointer<CChar>?] = launch.arguments.map { strdup($0) } + [nil]
        var environment: [UnsafeMutablePointer<CChar>?] =
            ModuleLaunch.environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in arguments + environment { free(text) } }
        var pid: pid_t = 0
        let status = posix_spawn(&pid, launch.runner, &actions, &attributes, &arguments, &environment)
        return (pid, status)
    }

    // MARK: Questions

    /// What it says of itself. Nil as a name: whatever it is called.
    mutating func hello(name: String?) throws(ModuleRefusal) -> ModuleHello {
        send(ModuleMessage(.hello), ModuleHello.ofHost)
        let (head, document) = try answer([.hello, .refused])
        guard head.kind == .hello else {
            throw ModuleRefusal(document: document, path: launch.path)
        }
        return try ModuleHello(document, path: launch.path, name: name)
    }

    /// What it thinks of one device's options, a JSON object; after ``hello(name:)``.
    mutating func validate(_ document: Data) throws(ModuleRefusal) -> [OptionIssue] {
        // Options that do not fit into one message are the module's to judge when it starts.
        guard document.count <= ModuleMessage.maximumLength - ModuleMessage.headLength else { return [] }
        send(ModuleMessage(.validate, cookie: 1), document)
        let (_, answer) = try answer([.validated])
        let issues = (try? JSONValue(parsing: answer))?.arrayValue ?? []
        return issues.compactMap { OptionIssue(ofModule: $0) }
    }

    /// Which device these options, a JSON object, mean, as one text; after ``hello(name:)``. Nil where it does not say.
    mutating func identity(_ document: Data) throws(ModuleRefusal) -> String? {
        guard document.count <= ModuleMessage.maximumLength - ModuleMessage.headLength else { return nil }
        send(ModuleMessage(.identify, cookie: 2), document)
        let (_, answer) = try answer([.identified])
        let text = String(decoding: answer, as: UTF8.self).singleLine
        return text.isEmpty ? nil : text
    }

    private func send(_ head: ModuleMessage, _ document: Data) {
        // What does not get through is not answered.
        withUnsafeTemporaryAllocation(byteCount: ModuleMessage.headLength, alignment: 8) { bytes in
            head.write(into: bytes)
            document.withUnsafeBytes { _ = ModuleSocket.transmit(socket, UnsafeRawBufferPointer(bytes), $0) }
        }
    }

    private mutating func answer(
        _ kinds: [ModuleMessage.Kind]
    ) throws(ModuleRefusal) -> (ModuleMessage, Data) {
        let end = Self.now + Self.patience
        var bytes = [UInt8](repeating: 0, count: ModuleMessage.maximumLength + 1)
        while true {
            var watched = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            let left = max(0, (end - Self.now) / .milliseconds(1))
            let ready = Glibc.poll(&watched, 1, Int32(left))
            if ready < 0, errno == EINTR { continue }
            guard ready > 0 else {
                throw ModuleRefusal(
                    launch.path, "has not answered within \(Self.patience.components.seconds) s",
                    advice: "run it by hand, or ask its vendor")
            }
            let count = bytes.withUnsafeMutableBytes { recv(socket, $0.baseAddress, $0.count, 0) }
            // A reset is told before what it said last: it ended without having read all.
            if count < 0, errno == EINTR || errno == ECONNRESET { continue }
            guard count > 0 else { throw ended() }
            let result = bytes.withUnsafeBytes { bytes -> (ModuleMessage, Data)?? in
                let bytes = UnsafeRawBufferPointer(rebasing: bytes.prefix(count))
                guard let head = try? ModuleMessage(decoding: bytes, from: .module) else { return nil }
                let payload = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(ModuleMessage.headLength))
                switch parts.take(head, payload) {
                case .whole: return (head, Data(payload))
                case .document(let document): return (head, Data(document))
                case .partial: return .some(nil)
                case .breach: return nil
                }
            }
            guard let result else {
                throw ModuleRefusal(
                    launch.path, "sent a message that is none",
                    advice: "ask its vendor for a version that keeps to the protocol")
            }
            if let (head, document) = result, kinds.contains(head.kind) { return (head, document) }
        }
    }

    /// It ended, and the last line of its standard error may say why.
    private func ended() -> ModuleRefusal {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        // What it has written is there: the end of its socket comes after it.
        let count = bytes.withUnsafeMutableBytes { read(errors, $0.baseAddress, $0.count) }
        var lines = ErrorLines()
        let records = lines.take(bytes.prefix(max(0, count))) + [lines.finish()].compactMap(\.self)
        let words = records.last.map { " (\($0.text))" } ?? ""
        return ModuleRefusal(
            launch.path, "ended before it said what it is\(words)", advice: "run it by hand, or ask its vendor")
    }

    private static var now: Duration {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}

extension ModuleRefusal {
    /// As the runner found it: a JSON object of `subject`, `rule` and `advice`, or plain text.
    init(document: Data, path: String) {
        let json = try? JSONValue(parsing: document)
        self.init(
            json?["subject"]?.stringValue ?? path,
            json?["rule"]?.stringValue ?? String(decoding: document, as: UTF8.self),
            advice: json?["advice"]?.stringValue ?? "ask its vendor")
    }

    var document: Data {
        JSONValue.object(["subject": .string(subject), "rule": .string(rule), "advice": .string(advice)]).serialized()
    }
}

extension OptionIssue {
    /// What a module says of an option: `ptr`, `msg`, `hint`.
    init?(ofModule value: JSONValue) {
        guard let message = value["msg"]?.stringValue else { return nil }
        let pointer = value["ptr"]?.stringValue ?? ""
        self.init(
            option: String(pointer.drop { $0 == "/" }), message: message.singleLine,
            hint: value["hint"]?.stringValue?.singleLine)
    }

    /// As ``init(ofModule:)`` reads it.
    var ofModule: JSONValue {
        var value: [String: JSONValue] = ["ptr": .string(option.isEmpty ? "" : "/" + option), "msg": .string(message)]
        if let hint { value["hint"] = .string(hint) }
        return .object(value)
    }
}
