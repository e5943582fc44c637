// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshModuleHost

/// What a process has written to standard error before it ended.
@Suite(.timeLimit(.minutes(20))) struct ErrorStreamTests {
    @Test func `all that is left at the end is read, the last line too`() async throws {
        try await onLoop { actor in
            let (stream, theirs) = try ErrorStream.open(actor.loop) { _, _ in Issue.record("read before the end") }
            let line = String(repeating: "x", count: 99) + "\n"
            // Nearly what the pipe holds.
            let text = Array((String(repeating: line, count: 600) + "<3>and this is why").utf8)
            #expect(write(theirs, text, text.count) == text.count)
            close(theirs)
            let records = stream.finish()
            #expect(records.count == 601)
            #expect(records.last?.level == .error)
            #expect(records.last?.text == "and this is why")
        }
    }

    @Test func `one who goes on writing is not listened to for ever`() async throws {
        try await onLoop { actor in
            let (stream, theirs) = try ErrorStream.open(actor.loop) { _, _ in }
            // Larger than what is read: another process has the pipe, and writes into the room that reading makes.
            let setPipeSize: Int32 = 1_031  // F_SETPIPE_SZ, which Glibc's overlay does not have
            try #require(fcntl(theirs, setPipeSize, 1 << 18) >= 200_000)
            let text = Array(String(repeating: "line\n", count: 40_000).utf8)
            #expect(write(theirs, text, text.count) == text.count)
            #expect(stream.finish().count < 14_000)
            close(theirs)
        }
    }

    @Test func `a process that has said much before it ended is heard to its last words`() async throws {
        try await onLoop { actor in
            let bench = try Bench(isolated: "rude", actor.loop)
            let transport = try bench.transport(["mode": "fatal"])
            try await transport.connect()
            try? await transport.send(Data("W".utf8))
            try await until(actor.loop) { bench.factory.status.crashes == 1 }
            #expect(bench.recorder.logged.contains("error: the device file is gone module=rude"))
            await bench.factory.shutDown()
        }
    }
}
