// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshLoop
import MeshTestSupport
import Testing

/// A listener whose socket file is taken away. In virtual time: nobody waits for its backoff.
struct SocketFileTests {
    /// A listener that greets who connects, and what it tells of its file.
    private final class Greeter {
        private(set) var listener: LoopListener!
        private var streams: [LoopStream] = []
        private var waiters: [LoopResult<LoopError?>] = []
        private var told: [LoopError?] = []

        init(_ loop: EventLoop, _ path: String, _ greeting: UInt8 = 1) throws(LoopError) {
            listener = try LoopListener(
                loop, on: SocketAddress(unixPath: path), onFileChange: { [weak self] in self?.note($0) }
            ) { [weak self] stream in
                self?.streams.append(stream)
                stream.startReading({ stream.write($0) }, onEnd: { _ in })
                [greeting].withUnsafeBytes { stream.write($0) }
            }
        }

        private func note(_ error: LoopError?) {
            if waiters.isEmpty { told.append(error) } else { waiters.removeFirst().set(error) }
        }

        /// What is told next.
        func next(isolation: isolated (any Actor)? = #isolation) async -> LoopError? {
            if !told.isEmpty { return told.removeFirst() }
            let result = LoopResult<LoopError?>()
            waiters.append(result)
            return await result.get()
        }
    }

    private static func run(_ body: @Sendable (isolated LoopActor, String) async throws -> Void) async throws {
        // As in the daemon: writing to one that has gone is an error, not a signal.
        signal(SIGPIPE, SIG_IGN)
        var template = Array("/tmp/meshhost-socket-XXXXXX".utf8CString)
        let folder = String(cString: try #require(mkdtemp(&template)))
        defer { rmdir(folder) }
        try await onLoop(time: .virtual) { actor in try await body(actor, folder + "/a.sock") }
        // The last listener takes its file with it.
        #expect(access(folder + "/a.sock", F_OK) != 0)
    }

    /// The first byte that a connection brings.
    private static func byte(
        from stream: LoopStream, isolation: isolated (any Actor)? = #isolation
    ) async -> UInt8? {
        let result = LoopResult<UInt8?>()
        stream.startReading({ result.set($0[0]) }, onEnd: { _ in result.set(nil) })
        defer { stream.pauseReading() }
        return await result.get()
    }

    private static func greeting(
        _ loop: EventLoop, _ path: String, isolation: isolated (any Actor)? = #isolation
    ) async throws -> (LoopStream, UInt8?) {
        let stream = LoopStream(unix: loop)
        try await stream.connect(to: SocketAddress(unixPath: path))
        return (stream, await byte(from: stream))
    }

    @Test func `a file that is removed is made again, and connections go on`() async throws {
        try await Self.run { actor, path in
            let greeter = try Greeter(actor.loop, path)
            let (old, first) = try await Self.greeting(actor.loop, path)
            #expect(first == 1)
            for _ in 0..<3 {
                #expect(unlink(path) == 0)
                #expect(await greeter.next()?.kind == .notFound)
                #expect(await greeter.next() == nil)
                var facts = stat()
                #expect(stat(path, &facts) == 0 && facts.st_mode & 0o777 == 0o660)
                #expect(try await Self.greeting(actor.loop, path).1 == 1)
            }
            [UInt8(9)].withUnsafeBytes { old.write($0) }
            #expect(await Self.byte(from: old) == 9)
        }
    }

    @Test func `who waits at the socket whose file goes is still let in`() async throws {
        try await Self.run { actor, path in
            let greeter = try Greeter(actor.loop, path)
            // Connected by the kernel, and not yet accepted: the loop has had no turn.
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            #expect(atSocketFile(path, connect, descriptor) && unlink(path) == 0)
            _ = await greeter.next()
            #expect(await greeter.next() == nil)
            var byte: UInt8 = 0
            #expect(read(descriptor, &byte, 1) == 1 && byte == 1)
        }
    }

    @Test func `a file that another one has bound meanwhile is left alone as long as it listens`() async throws {
        try await Self.run { actor, path in
            let greeter = try Greeter(actor.loop, path)
            #expect(unlink(path) == 0)
            var other: Greeter? = try Greeter(actor.loop, path, 2)
            _ = await greeter.next()
            // It is looked at again and again.
            for _ in 0..<5 { #expect(await greeter.next()?.kind == .addressInUse) }
            #expect(try await Self.greeting(actor.loop, path).1 == 2)
            // The other one ends in good order and takes its file with it.
            other = nil
            _ = other
            while await greeter.next() != nil {}
            #expect(try await Self.greeting(actor.loop, path).1 == 1)
        }
    }

    @Test func `a file that is found deserted twice is replaced`() async throws {
        try await Self.run { actor, path in
            let greeter = try Greeter(actor.loop, path)
            #expect(unlink(path) == 0)
            // Bound, and not listened on: as for a moment at the start of every program, and for ever after a crash.
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            #expect(atSocketFile(path, bind, descriptor))
            _ = await greeter.next()
            let begin = actor.loop.now
            #expect(await greeter.next()?.detail.contains("does not listen") == true)
            #expect(await greeter.next() == nil)
            #expect(actor.loop.now - begin >= .seconds(1))
            #expect(try await Self.greeting(actor.loop, path).1 == 1)
        }
    }

    @Test func `a folder that is away for a while is waited for`() async throws {
        try await Self.run { actor, path in
            let folder = String(path.dropLast("/a.sock".count))
            let greeter = try Greeter(actor.loop, path)
            #expect(unlink(path) == 0 && rmdir(folder) == 0)
            _ = await greeter.next()
            for _ in 0..<3 { #expect(await greeter.next()?.kind == .notFound) }
            #expect(mkdir(folder, 0o700) == 0)
            while await greeter.next() != nil {}
            #expect(try await Self.greeting(actor.loop, path).1 == 1)
        }
    }

    @Test func `other rights are nothing to tell of`() async throws {
        try await Self.run { actor, path in
            let greeter = try Greeter(actor.loop, path)
            #expect(chmod(path, 0o600) == 0)
            #expect(try await Self.greeting(actor.loop, path).1 == 1)
            #expect(unlink(path) == 0)
            #expect(await greeter.next()?.kind == .notFound)
        }
    }
}
