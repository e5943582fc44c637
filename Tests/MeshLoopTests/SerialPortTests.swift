// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshLoop
import MeshTestSupport
import Testing

/// Serial ports on pseudo terminals. What these have not, DTR and RTS above all, needs hardware.
struct SerialPortTests {
    /// How often this process has a file open.
    private static func openings(of path: String) -> Int {
        (0..<1_024).count { descriptor in
            withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { buffer in
                let count = readlink("/proc/self/fd/\(descriptor)", buffer.baseAddress!, buffer.count)
                return count > 0 && String(decoding: buffer.prefix(count), as: UTF8.self) == path
            }
        }
    }

    private static func error(
        opening line: SerialLine, _ loop: EventLoop, isolation: isolated (any Actor)? = #isolation
    ) async -> LoopError? {
        do throws(LoopError) {
            _ = try await LoopStream.open(line, on: loop)
            return nil
        } catch {
            return error
        }
    }

    @Test func `every byte goes both ways as it is`() async throws {
        try await onLoop { actor in
            let terminal = try PseudoTerminal(actor.loop)
            let port = try await LoopStream.open(SerialLine(path: terminal.path), on: actor.loop)
            let all = (0..<4_096).map { UInt8(truncatingIfNeeded: $0) }
            let there = Arrival<Void>(actor.loop)
            terminal.onReceived = { [unowned terminal] in if terminal.received.count == all.count { there.arrive(()) } }
            try await port.write(all)
            await there.get()
            #expect(terminal.take() == all)

            let back = Arrival<[UInt8]>(actor.loop)
            final class Received { var bytes: [UInt8] = [] }
            let received = Received()
            port.startReading { bytes in
                received.bytes += bytes
                if received.bytes.count == all.count { back.arrive(received.bytes) }
            } onEnd: { _ in
            }
            terminal.send(all)
            #expect(await back.get() == all)
            port.close()
        }
    }

    @Test func `what a device does not take waits, and arrives once it does`() async throws {
        try await onLoop { actor in
            let terminal = try PseudoTerminal(actor.loop)
            terminal.isStalled = true
            let port = try await LoopStream.open(SerialLine(path: terminal.path), on: actor.loop)
            let many = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            let written = Arrival<LoopError?>(actor.loop)
            many.withUnsafeBytes { port.write($0) { written.arrive($0) } }
            #expect(port.pendingWriteBytes > 200_000)
            let there = Arrival<Void>(actor.loop)
            terminal.onReceived = { [unowned terminal] in if terminal.received.count == many.count { there.arrive(()) }
            }
            terminal.isStalled = false
            await there.get()
            #expect(terminal.take() == many)
            #expect(await written.get() == nil)
            port.close()
        }
    }

    @Test func `bytes stay with the device while reading is paused`() async throws {
        try await onLoop { actor in
            let terminal = try PseudoTerminal(actor.loop)
            let port = try await LoopStream.open(SerialLine(path: terminal.path), on: actor.loop)
            final class Received { var bytes: [UInt8] = [] }
            let received = Received()
            let many = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 3) }
            let all = Arrival<Void>(actor.loop)
            port.startReading { bytes in
                received.bytes += bytes
                if received.bytes.count == many.count { all.arrive(()) }
            } onEnd: { _ in
            }
            port.pauseReading()
            terminal.send(many)
            #expect(received.bytes.isEmpty)
            port.resumeReading()
            await all.get()
            #expect(received.bytes == many)
            port.close()
        }
    }

    @Test func `the end of a device that was unplugged is told, and writing to it fails`() async throws {
        try await onLoop { actor in
            let terminal = try PseudoTerminal(actor.loop)
            let port = try await LoopStream.open(SerialLine(path: terminal.path), on: actor.loop)
            let end = Arrival<LoopError?>(actor.loop)
            port.startReading { _ in
            } onEnd: {
                end.arrive($0)
            }
            terminal.unplug()
            // The kernel tells the end of the file or an input/output error, as it happens to be.
            #expect([nil, .deviceGone].contains(await end.get()?.kind))
            #expect(port.isPeerGone)
            do throws(LoopError) {
                try await port.write([1])
                Issue.record("a device that is gone was written to")
            } catch {
                #expect(error.kind == .deviceGone)
            }
            port.close()
            #expect(await Self.error(opening: SerialLine(path: terminal.path), actor.loop)?.kind == .notFound)
        }
    }

    @Test func `a port has one user, whom a second is told of, and is free again after it`() async throws {
        try await onLoop { actor in
            let terminal = try PseudoTerminal(actor.loop)
            let line = SerialLine(path: terminal.path)
            let port = try await LoopStream.open(line, on: actor.loop)
            let error = try #require(await Self.error(opening: line, actor.loop))
            #expect(error.kind == .busy)
            #expect(error.detail == "it is in use by another link of this process")
            #expect(SerialHolder.all(of: terminal.path).map(\.processID) == [getpid()])
            port.close()
            // The descriptor is closed in the next turn at the latest.
            try await LoopStream.open(line, on: actor.loop).close()
        }
    }

    @Test func `another process that has a port is named`() async throws {
        try await onLoop { actor in
            let terminal = try PseudoTerminal(actor.loop)
            let path = terminal.path
            let holder = spawnSleeper(holding: path)
            defer {
                kill(holder, SIGKILL)
                waitpid(holder, nil, 0)
            }
            let error = try #require(await Self.error(opening: SerialLine(path: path), actor.loop))
            #expect(error.kind == .busy)
            #expect(error.detail.contains("(process \(holder))"))
        }
    }

    @Test func `the line is raw, and a hang-up of the board at the end is switched off`() async throws {
        try await onLoop { actor in
            let terminal = try PseudoTerminal(actor.loop)
            let line = SerialLine(
                path: terminal.path, baud: 9_600, hardwareFlowControl: true,
                control: SerialControl(dtr: true, rts: false))
            let port = try await LoopStream.open(line, on: actor.loop)
            var facts = termios()
            #expect(tcgetattr(port.descriptor, &facts) == 0)
            #expect(facts.c_lflag == 0 && facts.c_oflag == 0)
            #expect(facts.c_cflag & tcflag_t(HUPCL) == 0)
            #expect(facts.c_cflag & 0x8000_0000 != 0, "CRTSCTS")
            #expect(facts.c_cflag & tcflag_t(CSIZE) == tcflag_t(CS8))
            try await port.setControl(SerialControl(dtr: false, rts: false))
            port.close()
        }
    }

    @Test(arguments: [300, 115_200, 250_000, 1_000_000, 3_456_789] as [UInt32])
    func `any speed can be had`(baud: UInt32) async throws {
        try await onLoop { actor in
            let terminal = try PseudoTerminal(actor.loop)
            try await LoopStream.open(SerialLine(path: terminal.path, baud: baud), on: actor.loop).close()
        }
    }

    @Test func `a thousand failed openings leave no descriptor behind`() async throws {
        try await onLoop { actor in
            let terminal = try PseudoTerminal(actor.loop)
            let port = try await LoopStream.open(SerialLine(path: terminal.path), on: actor.loop)
            let before = Self.openings(of: terminal.path)
            for attempt in 0..<1_000 {
                let (path, kind): (String, LoopError.Kind) =
                    switch attempt % 4 {
                    case 0: (terminal.path, .busy)
                    case 1: ("/dev/full", .invalidArgument)
                    case 2: ("/dev/serial/by-id/nothing", .notFound)
                    default: ("/etc/passwd", .invalidArgument)
                    }
                #expect(await Self.error(opening: SerialLine(path: path), actor.loop)?.kind == kind)
            }
            #expect(Self.openings(of: terminal.path) == before)
            #expect(Self.openings(of: "/dev/full") == 0)
            port.close()
        }
    }
}

/// A process that has the port open and locked, and does nothing. It is there when this returns.
private func spawnSleeper(holding path: String) -> pid_t {
    let descriptor = open(path, O_RDWR | O_NOCTTY)
    precondition(descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    // The child shares the description, and with it the lock, which ends with the last of the two.
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, descriptor, 0)
    var child: pid_t = 0
    let arguments: [UnsafeMutablePointer<CChar>?] = [strdup("sleep"), strdup("60"), nil]
    defer { for argument in arguments { free(argument) } }
    let status = posix_spawn(&child, "/bin/sleep", &actions, nil, arguments, nil)
    precondition(status == 0)
    close(descriptor)
    return child
}
