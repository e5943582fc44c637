// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshLoop
import MeshTestSupport
import Testing

/// An echo server and a client on one loop.
struct LoopStreamTests {
    /// Echoes what its connections send, until dropped.
    private final class EchoServer {
        private(set) var listener: LoopListener!
        private(set) var streams: [LoopStream] = []
        var onAccept: ((LoopStream) -> Void)?

        init(_ loop: EventLoop, on address: SocketAddress) throws(LoopError) {
            listener = try LoopListener(loop, on: address) { [weak self] stream in self?.accept(stream) }
        }

        private func accept(_ stream: LoopStream) {
            streams.append(stream)
            onAccept?(stream)
            stream.startReading { [unowned stream] bytes in
                stream.write(bytes)
            } onEnd: { [weak self, unowned stream] _ in
                self?.streams.removeAll { $0 === stream }
            }
        }
    }

    private static func echo(_ count: Int, through client: LoopStream, _ loop: EventLoop) async throws -> [UInt8] {
        let arrival = Arrival<[UInt8]>(loop)
        final class Received { var bytes: [UInt8] = [] }
        let received = Received()
        client.startReading { bytes in
            received.bytes += bytes
            if received.bytes.count == count { arrival.arrive(received.bytes) }
        } onEnd: { _ in
        }
        try await client.write((0..<count).map { UInt8(truncatingIfNeeded: $0) })
        return await arrival.get()
    }

    @Test(arguments: ["127.0.0.1", "::1"])
    func `a megabyte is echoed over TCP`(_ host: String) async throws {
        let received = try await onLoop { actor in
            let address = try #require(SocketAddress(ip: host, port: 0))
            let server = try EchoServer(actor.loop, on: address)
            let client = LoopStream(tcp: actor.loop)
            try await client.connect(to: server.listener.address)
            client.setNoDelay()
            client.setKeepAlive(idle: .seconds(30), interval: .seconds(10), count: 3, unacknowledged: .seconds(30))
            #expect(client.peerAddress?.description == server.listener.address.description)
            return try await LoopStreamTests.echo(1_000_000, through: client, actor.loop)
        }
        #expect(received == (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0) })
    }

    @Test func `a Unix socket echoes, knows its peer and removes its file`() async throws {
        let path = "/tmp/meshhost-loop-\(getpid()).sock"
        try await onLoop { actor in
            let server = try EchoServer(actor.loop, on: SocketAddress(unixPath: path))
            var facts = stat()
            #expect(lstat(path, &facts) == 0 && facts.st_mode & 0o777 == 0o660)
            let client = LoopStream(unix: actor.loop)
            try await client.connect(to: SocketAddress(unixPath: path))
            let received = try await LoopStreamTests.echo(5_000, through: client, actor.loop)
            #expect(received.count == 5_000)
            #expect(server.streams.first?.peerCredentials?.pid == getpid())
            let error = #expect(throws: LoopError.self) {
                _ = try EchoServer(actor.loop, on: SocketAddress(unixPath: path))
            }
            #expect(error?.kind == .addressInUse)
        }
        #expect(access(path, F_OK) != 0)
    }

    @Test func `a stale Unix socket file is replaced, another file is not`() async throws {
        let path = "/tmp/meshhost-stale-\(getpid()).sock"
        defer { unlink(path) }
        let left = try #require(UnixAddress(path)).bound()
        close(left)
        try await onLoop { actor in
            _ = try EchoServer(actor.loop, on: SocketAddress(unixPath: path))
        }
        close(open(path, O_CREAT | O_WRONLY, 0o600))
        let error = await #expect(throws: LoopError.self) {
            try await onLoop { actor in _ = try EchoServer(actor.loop, on: SocketAddress(unixPath: path)) }
        }
        #expect(error?.kind == .addressInUse)
        #expect(access(path, F_OK) == 0)
    }

    @Test func `a Unix socket whose owner accepts nobody is in use, and nothing waits for it`() async throws {
        let path = "/tmp/meshhost-full-\(getpid()).sock"
        let owner = try #require(UnixAddress(path)).bound()
        defer {
            close(owner)
            unlink(path)
        }
        listen(owner, 0)
        var waiting: [Int32] = []
        defer { for each in waiting { close(each) } }
        while let next = try #require(UnixAddress(path)).connected() { waiting.append(next) }
        let error = await #expect(throws: LoopError.self) {
            try await onLoop { actor in _ = try EchoServer(actor.loop, on: SocketAddress(unixPath: path)) }
        }
        #expect(error?.kind == .addressInUse)
    }

    @Test func `a path that no socket can have is an error, and nothing is made`() async throws {
        let path = "/tmp/meshhost-\(getpid())" + String(repeating: "x", count: 100)
        for reach in ["bind", "connect"] {
            let error = await #expect(throws: LoopError.self) {
                try await onLoop { actor in
                    if reach == "bind" { _ = try EchoServer(actor.loop, on: SocketAddress(unixPath: path)) }
                    try await LoopStream(unix: actor.loop).connect(to: SocketAddress(unixPath: path))
                }
            }
            #expect(error?.kind == .invalidArgument)
        }
        #expect(access(path, F_OK) != 0 && access(String(path.prefix(107)), F_OK) != 0)
    }

    @Test func `a folder that is missing is not found`() async throws {
        let error = await #expect(throws: LoopError.self) {
            try await onLoop { actor in
                _ = try EchoServer(actor.loop, on: SocketAddress(unixPath: "/tmp/meshhost-no-\(getpid())/a.sock"))
            }
        }
        #expect(error?.kind == .notFound)
    }

    @Test func `a listener leaves a file that has taken its place`() async throws {
        let path = "/tmp/meshhost-taken-\(getpid()).sock"
        defer { unlink(path) }
        try await onLoop { actor in
            let server = try EchoServer(actor.loop, on: SocketAddress(unixPath: path))
            unlink(path)
            close(open(path, O_CREAT | O_WRONLY, 0o600))
            withExtendedLifetime(server) {}
        }
        #expect(access(path, F_OK) == 0)
    }

    @Test func `a refused connection says so and names the address`() async throws {
        let error = await #expect(throws: LoopError.self) {
            try await onLoop { actor in
                let address: SocketAddress
                do {
                    let server = try EchoServer(actor.loop, on: try #require(SocketAddress(ip: "127.0.0.1", port: 0)))
                    address = server.listener.address
                }
                try await actor.loop.sleep(for: .milliseconds(1))
                try await LoopStream(tcp: actor.loop).connect(to: address)
            }
        }
        #expect(error?.kind == .connectionRefused)
        #expect(error?.operation.hasPrefix("connect to 127.0.0.1:") == true)
    }

    @Test func `a cancelled connect ends as cancelled`() async throws {
        let kind = try await onLoop { actor in
            // A full backlog leaves a connection pending: TEST-NET addresses would need a route.
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(listener) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let port = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(listener, $0, length)
                    listen(listener, 0)
                    getsockname(listener, $0, &length)
                }
                return UInt16(bigEndian: pointer.pointee.sin_port)
            }
            let target = try #require(SocketAddress(ip: "127.0.0.1", port: port))
            let filler = LoopStream(tcp: actor.loop)
            try await filler.connect(to: target)
            let loop = actor.loop
            let tasks = (0..<4).map { _ in
                Task { () -> LoopError.Kind? in
                    await actor.run { actor in
                        do throws(LoopError) {
                            try await LoopStream(tcp: loop).connect(to: target)
                            return nil
                        } catch { return error.kind }
                    }
                }
            }
            try await loop.sleep(for: .milliseconds(5))
            for task in tasks { task.cancel() }
            return await tasks.last!.value
        }
        #expect(kind == .cancelled)
    }

    @Test func `paused reading leaves bytes in the kernel`() async throws {
        try await onLoop { actor in
            let server = try EchoServer(actor.loop, on: try #require(SocketAddress(ip: "127.0.0.1", port: 0)))
            let client = LoopStream(tcp: actor.loop)
            try await client.connect(to: server.listener.address)
            final class Count { var bytes = 0 }
            let count = Count()
            let arrival = Arrival<Int>(actor.loop)
            client.startReading { bytes in
                count.bytes += bytes.count
                if count.bytes == 4 { arrival.arrive(4) }
            } onEnd: { _ in
            }
            client.pauseReading()
            try await client.write([1, 2, 3, 4])
            try await actor.loop.sleep(for: .milliseconds(10))
            #expect(count.bytes == 0)
            client.resumeReading()
            #expect(await arrival.get() == 4)
        }
    }

    @Test func `the peer's end arrives once, and writing to it fails`() async throws {
        try await onLoop { actor in
            let server = try EchoServer(actor.loop, on: try #require(SocketAddress(ip: "127.0.0.1", port: 0)))
            let client = LoopStream(tcp: actor.loop)
            try await client.connect(to: server.listener.address)
            let arrival = Arrival<LoopError?>(actor.loop)
            client.startReading { _ in
            } onEnd: {
                arrival.arrive($0)
            }
            try await client.write([1])
            while server.streams.isEmpty { try await actor.loop.sleep(for: .milliseconds(1)) }
            server.streams[0].closeWithReset()
            let end = await arrival.get()
            #expect(end == nil || end?.kind == .connectionReset)
            client.close()
            do throws(LoopError) {
                // Not `#expect(throws:)`: its closure would leave the loop.
                try await client.write([1])
                Issue.record("a closed stream took bytes")
            } catch {
                #expect(error.kind == .notConnected)
            }
        }
    }

    @Test func `names resolve, and a name that is none is said to be`() async throws {
        let addresses = try await onLoop { try await $0.loop.resolve(host: "localhost", port: 5000) }
        #expect(addresses.contains { $0.isLoopback && $0.port == 5000 })
        let numeric = try await onLoop { try await $0.loop.resolve(host: "192.0.2.7", port: 1) }
        #expect(numeric.map(\.description) == ["192.0.2.7:1"])
        let error = await #expect(throws: LoopError.self) {
            try await onLoop { try await $0.loop.resolve(host: "no-such-host.invalid", port: 1) }
        }
        #expect(error?.kind == .hostNotFound)
    }
}

/// A Unix socket of the test's own, by system calls.
private struct UnixAddress {
    private var address = sockaddr_un()

    init?(_ path: String) {
        guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    }

    func bound() -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        #expect(call(descriptor, bind) == 0)
        return descriptor
    }

    /// Nil when there is no room.
    func connected() -> Int32? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        if call(descriptor, connect) == 0 { return descriptor }
        close(descriptor)
        return nil
    }

    private func call(_ descriptor: Int32, _ body: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32) -> Int32 {
        withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
