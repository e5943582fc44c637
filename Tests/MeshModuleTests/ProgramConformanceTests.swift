// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshLoop
import MeshTransportAPI
import MeshTransportTesting
import Testing

@testable import MeshModuleHost

/// The example of a transport that is a program, and what of its answers breaks the protocol.
@Suite(.timeLimit(.minutes(20))) struct ProgramConformanceTests {
    private static let example = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Examples/python-transport/udp_transport.py")

    /// The example in a folder that nobody else can write to, with `body` before its main part.
    private static func program(_ folder: TemporaryFolder, _ body: String = "") throws -> IsolatedModule {
        let text = String(decoding: try Data(contentsOf: example), as: UTF8.self)
        let main = try #require(text.firstRange(of: "if __name__"))
        let path = try folder.file(
            "udp.py", Array((text[..<main.lowerBound] + body + "\n\n" + text[main.lowerBound...]).utf8), mode: 0o755)
        let runner = (ModuleLocator().programFolder ?? ".") + "/meshhost"
        return try IsolatedModule("udp", ModuleLaunch(.command(["/usr/bin/env", "python3", path]), runner: runner))
    }

    private static func transport(
        _ factory: ModuleTransportFactory, port: UInt16, _ environment: TransportEnvironment
    ) throws -> any MeshTransport {
        let written: [String: JSONValue] = ["host": "127.0.0.1", "port": .int(Int64(port))]
        let (values, issues) = factory.check(written)
        try #require(issues.isEmpty, "\(issues)")
        return try factory.makeTransport(
            TransportSettings(device: "roof", options: values, written: written, environment: environment))
    }

    @Test func `the example keeps the rules of a transport`() async throws {
        let folder = TemporaryFolder()
        let thread = LoopThread()
        // On the loop's thread: it waits for a process, and must not hold up other tests.
        let module = try await LoopActor(thread.loop).run { _ in try Self.program(folder) }
        let conformance = TransportConformance(timeLimit: .seconds(600)) { environment in
            let peer = try await DatagramPeer(thread.loop)
            let factory = ModuleTransportFactory(module: module, loop: thread.loop, log: .none)
            let transport = try await LoopActor(thread.loop).run { _ in
                try Self.transport(factory, port: peer.port, environment)
            }
            return ConformanceSubject(transport: transport, peer: peer) {
                await peer.end()
                await factory.shutDown()
            }
        }
        let report = await conformance.run()
        #expect(report.broken == [], "\(report)")
        #expect(report.results.count > report.skipped.count * 2, "\(report)")
        #expect(module.status.crashes == 0)
        try await thread.shutDown()
    }

    @Test func `a program is asked which device options mean if it says that it can tell`() async throws {
        let folder = TemporaryFolder()
        let thread = LoopThread()
        let silent = TemporaryFolder()
        try await LoopActor(thread.loop).run { _ in
            let options: [String: JSONValue] = ["host": "Radio.example", "port": 9, "largest": 176]
            let program = try Self.program(folder)
            _ = program.ask([OptionQuestion(options)])
            #expect(program.identity(options) == "radio.example:9")
            // One that is older than the question would not expect it.
            let older = try Self.program(silent, "del Udp.HELLO['identifies']\n")
            _ = older.ask([OptionQuestion(options)])
            #expect(older.identity(options) == nil)
        }
        try await thread.shutDown()
    }

    @Test(arguments: [
        // Frames that nobody takes, until one is more than the credit.
        ("surplus", "for _ in range(1025): self.wire.say(FRAME, b'f', link=link)", "sends frames beyond its credit"),
        ("hello again", "self.wire.document(HELLO, self.HELLO)", "says hello twice"),
        (
            "parts",
            "self.wire.socket.send(HEAD.pack(MANAGED, 1, 0, 0, 0, 1) + b'{'); self.wire.document(MANAGED, {}, cookie=2)",
            "parts of a document"
        ),
        ("started again", "self.wire.say(STARTED)", "has started twice"),
        ("host's words", "self.wire.say(PING)", "sent a message that is none"),
    ])
    func `a breach of the protocol ends the process`(what: String, words: String, reason: String) async throws {
        let folder = TemporaryFolder()
        let thread = LoopThread()
        let module = try await LoopActor(thread.loop).run { _ in
            try Self.program(
                folder,
                "def up(self, link, request):\n    self.wire.say(LINK_UP, b'x', code=9, link=link)\n    \(words)\n"
                    + "Udp.connect = up")
        }
        let recorder = Recorder()
        let factory = ModuleTransportFactory(module: module, loop: thread.loop, log: recorder.log)
        let transport = try await LoopActor(thread.loop).run { _ in
            try Self.transport(factory, port: 9, recorder.environment)
        }
        try await transport.connect()
        while await transport.isConnected { try await Task.sleep(for: .milliseconds(5)) }
        let end = recorder.summary.last { $0.hasPrefix("down") } ?? ""
        #expect(end.contains(reason), "\(what): \(end)")
        await factory.shutDown()
        try await thread.shutDown()
    }
}

/// A radio behind UDP on 127.0.0.1. It finds whom to send to as the system does: by who has a socket that leads to it.
private actor DatagramPeer: ConformancePeer {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let port: UInt16
    nonisolated var abilities: ConformanceAbilities { [.sending, .receiving] }
    private let descriptor: Int32
    private var poll: LoopPoll?
    private var frames: [[UInt8]] = []
    private var waiters: [CheckedContinuation<[UInt8], Never>] = []

    init(_ loop: EventLoop) async throws {
        self.loop = loop
        descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        try #require(isBound)
        port = UInt16(bigEndian: address.sin_port)
        try self.watch()
    }

    private func watch() throws {
        let poll = try LoopPoll(loop, descriptor: descriptor) { [unowned self] _, _ in
            assumeIsolated { $0.read() }
        }
        poll.wait(for: .readable)
        self.poll = poll
    }

    func end() {
        poll = nil
        Glibc.close(descriptor)
    }

    private func read() {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            guard count >= 0 else { return }
            let frame = Array(buffer.prefix(count))
            if waiters.isEmpty { frames.append(frame) } else { waiters.removeFirst().resume(returning: frame) }
        }
    }

    func receiveFrame() async -> [UInt8] {
        if !frames.isEmpty { return frames.removeFirst() }
        return await withCheckedContinuation { waiters.append($0) }
    }

    func sendFrame(_ payload: [UInt8]) async throws {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = try await other().bigEndian
        let count = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, payload, payload.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(count == payload.count)
    }

    /// The port of the socket that is connected to this one, once there is room: the network drops what finds none.
    private func other() async throws -> UInt16 {
        let wanted = ":" + Self.hexadecimal(port)
        while true {
            let table = String(decoding: try Data(contentsOf: URL(filePath: "/proc/net/udp")), as: UTF8.self)
            for row in table.split(separator: "\n").dropFirst() {
                let fields = row.split(separator: " ")
                guard fields[2].hasSuffix(wanted), let port = UInt16(fields[1].suffix(4), radix: 16),
                    let waiting = Int(fields[4].suffix(8), radix: 16), waiting < 65_536
                else { continue }
                return port
            }
            try await loop.sleep(for: .milliseconds(2))
        }
    }

    private static func hexadecimal(_ port: UInt16) -> String {
        let digits = String(port, radix: 16, uppercase: true)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }

    func sendHalfFrame() async throws { throw MissingAbility() }
    func reset() async throws { throw MissingAbility() }
    func holdConnections() async throws { throw MissingAbility() }
    func acceptConnections() async throws { throw MissingAbility() }
    func close() async throws { throw MissingAbility() }
}
