// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshLoop
import MeshTransportAPI
import Synchronization
import Testing

@testable import MeshRuntime

struct IntentStoreTests {
    /// Runs `body` with an empty directory and a loop.
    private func withDirectory(_ body: (String, EventLoop) async throws -> Void) async throws {
        let directory = try Host.temporaryDirectory()
        defer { Host.removeDirectory(directory) }
        let thread = LoopThread()
        try await body(directory, thread.loop)
        try await thread.shutDown()
    }

    private func write(_ text: String, _ path: String) throws {
        try Data(text.utf8).write(to: URL(filePath: path))
    }

    @Test func `a store in memory keeps what is set as long as it lives`() async throws {
        let thread = LoopThread()
        let store = IntentStore(inMemory: thread.loop)
        #expect(await store.intent(of: "roof") == nil)
        try await store.set(.disconnect, for: "roof")
        try await store.set(.disconnect, for: "roof")
        #expect(await store.intent(of: "roof") == .disconnect)
        #expect(await IntentStore(inMemory: thread.loop).intent(of: "roof") == nil)
        try await thread.shutDown()
    }

    @Test func `what is set is there after a restart`() async throws {
        try await withDirectory { directory, loop in
            let store = try await IntentStore.open(directory: directory, loop: loop, log: .none)
            #expect(await store.intent(of: "roof") == nil)
            let release = StoredIntent.release(until: 1_772_367_000, length: .seconds(600))
            try await store.set(.disconnect, for: "roof")
            try await store.set(.connect, for: "hill")
            try await store.set(release, for: "mast")
            try await store.set(.release(until: nil, length: nil), for: "barn")
            let again = try await IntentStore.open(directory: directory, loop: loop, log: .none)
            #expect(await again.intent(of: "roof") == .disconnect)
            #expect(await again.intent(of: "hill") == .connect)
            #expect(await again.intent(of: "mast") == release)
            #expect(await again.intent(of: "barn") == .release(until: nil, length: nil))
        }
    }

    @Test func `the file is for its owner alone and nothing else is left`() async throws {
        try await withDirectory { directory, loop in
            let store = try await IntentStore.open(directory: directory, loop: loop, log: .none)
            try write("an older attempt", directory + "/intents.json.new")
            try await store.set(.disconnect, for: "roof")
            var status = stat()
            #expect(stat(directory + "/intents.json", &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["intents.json"])
        }
    }

    @Test func `many changes at once are all durable`() async throws {
        try await withDirectory { directory, loop in
            let store = try await IntentStore.open(directory: directory, loop: loop, log: .none)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<200 { group.addTask { try await store.set(.disconnect, for: "d\(number)") } }
                try await group.waitForAll()
            }
            let again = try await IntentStore.open(directory: directory, loop: loop, log: .none)
            for number in 0..<200 { #expect(await again.intent(of: "d\(number)") == .disconnect) }
        }
    }

    @Test(arguments: ["", "{", "[]", "{\"v\":2,\"devices\":{}}", "{\"v\":1,\"devices\":[]}", "\u{0}\u{1}"])
    func `a file that cannot be understood is kept aside and said loudly`(_ text: String) async throws {
        try await withDirectory { directory, loop in
            try write(text, directory + "/intents.json")
            let loud = Mutex(0)
            let log = LogSink(threshold: .debug) { level, _, _ in
                if level == .error { loud.withLock { $0 += 1 } }
            }
            let store = try await IntentStore.open(directory: directory, loop: loop, log: log)
            #expect(loud.withLock { $0 } == 1)
            #expect(await store.intent(of: "roof") == nil)
            #expect(try Data(contentsOf: URL(filePath: directory + "/intents.json.corrupt")) == Data(text.utf8))
            try await store.set(.disconnect, for: "roof")
            #expect(await store.intent(of: "roof") == .disconnect)
        }
    }

    @Test func `entries of other devices and other versions are kept`() async throws {
        try await withDirectory { directory, loop in
            let text = """
                {"v": 1, "devices": {"gone": {"intent": "disconnect"}, "new": {"intent": "pause", "x": [1]}, "odd": 3}}
                """
            try write(text, directory + "/intents.json")
            let store = try await IntentStore.open(directory: directory, loop: loop, log: .none)
            #expect(await store.intent(of: "new") == nil)
            try await store.set(.connect, for: "roof")
            let json = try JSONValue(parsing: Data(contentsOf: URL(filePath: directory + "/intents.json")))
            #expect(json["devices"]?["gone"] == ["intent": "disconnect"])
            #expect(json["devices"]?["new"] == ["intent": "pause", "x": [1]])
            #expect(json["devices"]?["odd"] == 3)
            #expect(json["devices"]?["roof"] == ["intent": "connect"])
        }
    }

    @Test func `what cannot be written is said to the asker and can be tried again`() async throws {
        try await withDirectory { directory, loop in
            let state = directory + "/state"
            mkdir(state, 0o700)
            let store = try await IntentStore.open(directory: state, loop: loop, log: .none)
            rmdir(state)
            await #expect(throws: MeshError(.storageFailed, "")) { try await store.set(.disconnect, for: "roof") }
            #expect(await store.intent(of: "roof") == .disconnect)
            mkdir(state, 0o700)
            // The same intent again is not taken for stored.
            try await store.set(.disconnect, for: "roof")
            let again = try await IntentStore.open(directory: state, loop: loop, log: .none)
            #expect(await again.intent(of: "roof") == .disconnect)
        }
    }

    @Test func `a file that cannot be read stops the start`() async throws {
        try await withDirectory { directory, loop in
            mkdir(directory + "/intents.json", 0o700)
            await #expect(throws: MeshError(.storageFailed, "")) {
                _ = try await IntentStore.open(directory: directory, loop: loop, log: .none)
            }
        }
    }

    @Test func `a release follows the wall clock but never outlasts its length`() {
        let release = StoredIntent.release(until: 1_000, length: .seconds(60))
        #expect(release.intent(now: .seconds(5), wallClock: .seconds(970)) == .release(until: .seconds(35)))
        #expect(release.intent(now: .seconds(5), wallClock: .seconds(1_000)) == .connect)
        // A clock that starts in 1970.
        #expect(release.intent(now: .seconds(5), wallClock: .zero) == .release(until: .seconds(65)))
        let endless = StoredIntent.release(until: .max, length: nil)
        #expect(endless.intent(now: .zero, wallClock: .zero) == .release(until: .seconds(Int64.max)))
    }
}
