// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import CTransportABI
import FoundationEssentials
import Glibc
import MeshLoop
import MeshTransportAPI
import Synchronization
import Testing

@testable import MeshModuleHost

/// The modules that are built beside the tests.
enum Fixture {
    static func path(_ name: String) -> String {
        (ModuleLocator().programFolder ?? ".") + "/libfixture-\(name).so"
    }

    static func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: path(name))))
    }

    /// The file's bytes with the version fields of its description replaced.
    static func rude(
        size: UInt32 = 88, major: UInt32 = 1, minorNeeded: UInt32 = 0, replacing: (String, String)? = nil,
        everywhere: Bool = false
    ) throws -> [UInt8] {
        func row(_ numbers: [UInt32]) -> [UInt8] {
            numbers.flatMap { n in withUnsafeBytes(of: n.littleEndian, Array.init) }
        }
        var bytes = try bytes("rude")
        try bytes.replace(row([88, 1, MH_ABI_MINOR, 0]), with: row([size, major, MH_ABI_MINOR, minorNeeded]))
        if let (old, new) = replacing {
            try bytes.replace(Array(old.utf8) + [0], with: Array(new.utf8) + [0], everywhere: everywhere)
        }
        return bytes
    }
}

extension [UInt8] {
    /// Replaces `old` in the one place where it stands, or everywhere.
    mutating func replace(_ old: [UInt8], with new: [UInt8], everywhere: Bool = false) throws {
        try #require(old.count == new.count)
        let places = (0...(count - old.count)).filter {
            self[$0] == old[0] && Array(self[$0..<($0 + old.count)]) == old
        }
        try #require(everywhere ? !places.isEmpty : places.count == 1, "the pattern stands at \(places)")
        for place in places { replaceSubrange(place..<(place + old.count), with: new) }
    }
}

/// A folder of its own, removed with the object.
final class TemporaryFolder: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/meshhost-test-XXXXXX".utf8CString)
        path = String(cString: mkdtemp(&template))
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Writes a file and gives its path.
    func file(_ name: String, _ bytes: [UInt8], mode: mode_t = 0o644) throws -> String {
        let path = "\(path)/\(name)"
        try Data(bytes).write(to: URL(filePath: path))
        try #require(chmod(path, mode) == 0)
        return path
    }
}

/// What a transport and a module reported.
final class Recorder: Sendable {
    private let events = Mutex<[LinkEvent]>([])
    private let lines = Mutex<[String]>([])

    var log: LogSink {
        LogSink(threshold: .debug) { level, message, fields in
            self.lines.withLock { $0.append("\(level): \(message)\(fields.map { " \($0)=\($1)" }.joined())") }
        }
    }

    var environment: TransportEnvironment {
        TransportEnvironment(log: log) { event in self.events.withLock { $0.append(event) } }
    }

    var logged: [String] { lines.withLock { $0 } }
    var all: [LinkEvent] { events.withLock { $0 } }

    /// The events in a few words.
    var summary: [String] {
        all.map {
            switch $0 {
            case .phase(let phase): "phase \(phase)"
            case .up(let info): "up \(info.maximumFrameLength) \(info.peer)"
            case .down(nil): "down"
            case .down(let reason?): "down \(reason.code) \(reason.message)"
            case .framesDropped: "dropped"
            case .bytesSkipped(let count): "skipped \(count)"
            case .adapter(let available): "adapter \(available)"
            }
        }
    }

    /// How often a module has said these words.
    func count(_ words: String) -> Int { logged.count { $0.contains(words) } }

    var framesDropped: Int {
        all.reduce(0) { if case .framesDropped(let count) = $1 { $0 + count } else { $0 } }
    }
}

/// A loaded module, a factory for it on this loop, and what is reported.
struct Bench {
    let factory: ModuleTransportFactory
    let recorder = Recorder()
    /// Nil for one in this process.
    let isolated: IsolatedModule?

    init(_ name: String, _ loop: EventLoop, settings: ModuleSettings = ModuleSettings()) throws {
        let module = try ModuleLoader().load(name, path: Fixture.path(name))
        factory = ModuleTransportFactory(module: module, loop: loop, log: recorder.log, settings: settings)
        isolated = nil
    }

    /// The same module in processes of its own.
    init(
        isolated name: String, _ loop: EventLoop, settings: ModuleSettings = ModuleSettings(),
        supervision: ModuleSupervisorStateMachine.Configuration = .init()
    ) throws {
        let module = try Self.isolated(name, supervision: supervision)
        factory = ModuleTransportFactory(module: module, loop: loop, log: recorder.log, settings: settings)
        isolated = module
    }

    static func isolated(
        _ name: String, supervision: ModuleSupervisorStateMachine.Configuration = .init()
    ) throws -> IsolatedModule {
        let launch = ModuleLaunch(
            .library(name: name, path: Fixture.path(name)), runner: (ModuleLocator().programFolder ?? ".") + "/meshhost"
        )
        return try IsolatedModule(name, launch, supervision: supervision)
    }

    /// What it tells goes to the recorder, unless `environment` says otherwise.
    func transport(
        _ written: [String: JSONValue], device: String = "roof", environment: TransportEnvironment? = nil
    ) throws -> any TransportDiagnosing {
        let (values, issues) = factory.check(written)
        try #require(issues.isEmpty)
        let transport = try factory.makeTransport(
            TransportSettings(
                device: device, options: values, written: written, environment: environment ?? recorder.environment))
        return try #require(transport as? any TransportDiagnosing)
    }
}

/// The code of the `MeshError` that `body` throws.
func code(
    isolation: isolated (any Actor)? = #isolation, of body: () async throws -> Void
) async -> MeshError.Code? {
    do {
        try await body()
        return nil
    } catch {
        return (error as? MeshError)?.code
    }
}

/// Waits for what nothing tells of. The loop turns meanwhile.
func until(
    _ loop: EventLoop, isolation: isolated (any Actor)? = #isolation, _ condition: () async -> Bool
) async throws {
    while await !condition() { try await loop.sleep(for: .milliseconds(1)) }
}

/// Lets the loop turn: often enough for the tasks of a module that have nothing to wait for.
func turns(_ loop: EventLoop, isolation: isolated (any Actor)? = #isolation) async throws {
    for _ in 0..<20 { try await loop.sleep(for: .zero) }
}

/// The number in the first four bytes of a frame.
func number(_ frame: Data) -> Int {
    frame.prefix(4).reduce(0) { $0 << 8 | Int($1) }
}
