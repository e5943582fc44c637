// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTestSupport
import Synchronization
import Testing

/// A radio that answers with anything at all.
struct NonsenseTests {
    /// Frames that make sense somewhere, and some that do nowhere.
    private static let frames: [Data] =
        [
            "00", "01", "0102", "0103", "0202000000", "04c8000000", "0601deadbeef88130000", "06", "0980009265", "0a",
            "070123456789ab02008000926548656c6c6f", "0c8000", "0f", "130000200000", "190302", "1c", "7f01",
            "82deadbeeff4010000", "82", "83", "8500010203040506", "8600aabbccddeeff", "8428abff01020304", "8b00", "90",
            "8c00deadbeef0102", "890001000700000000000000010c10", "80" + Golden.keyHex, "81" + Golden.keyHex,
            "8f" + Golden.keyHex, "ff00",
        ].map { hex($0) } + [Golden.selfInfo, Golden.deviceInfo, SessionContactTests.ann, SessionChannelTests.info(3)]

    private static let calls: [@Sendable (MeshCoreSession) async throws -> Void] = [
        { _ = try await $0.time() }, { _ = try await $0.contacts() }, { _ = try await $0.channels() },
        { _ = try await $0.send("Hello", to: Golden.key) }, { _ = try await $0.status(of: Golden.key) },
        { _ = try await $0.login(to: Golden.otherKey, password: "") }, { _ = try await $0.trace(Data([1])) },
        { _ = try await $0.neighbours(of: Golden.key) }, { _ = try await $0.sign(Data(count: 200)) },
        { _ = try await $0.nextMessage() }, { _ = try await $0.ownTelemetry() }, { try await $0.reboot() },
        { _ = try await $0.refreshContacts() }, { try await $0.ready() },
    ]

    /// Whatever comes, at whatever time: nothing traps, every call ends, and so does the session.
    @Test func `a radio that talks nonsense stops nobody`() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        let random = Mutex(SplitMix(state: seed))
        @Sendable func some(_ count: ClosedRange<Int>) -> [Data] {
            random.withLock { random in
                (0..<Int.random(in: count, using: &random)).map { _ in
                    let frame = Self.frames.randomElement(using: &random) ?? Data()
                    return Bool.random(using: &random)
                        ? frame : frame.prefix(.random(in: 0...frame.count, using: &random))
                }
            }
        }
        let settings = MeshSessionSettings()
        let bench = SessionBench(settings: settings) { frame, number in
            // Mostly what is right, or the session would not get far.
            random.withLock { Int.random(in: 0...9, using: &$0) } < 6 ? nil : some(0...3)
        }
        let events = await bench.session.events(buffer: 16)
        let listener = Task { for await _ in events {} }
        await withTaskGroup { group in
            for round in 0..<150 {
                try? await bench.session.start()
                for _ in 0..<4 {
                    let call = random.withLock { Self.calls.randomElement(using: &$0) ?? Self.calls[0] }
                    group.addTask { try? await call(bench.session) }
                }
                for frame in some(0...4) { await bench.radio.say(frame) }
                if round.isMultiple(of: 25) { await bench.radio.vanish() }
                bench.clock.advance(by: .milliseconds(random.withLock { Int.random(in: 0...4_000, using: &$0) }))
                await Task.yield()
            }
            await bench.session.stop()
            await group.waitForAll()
        }
        await listener.value
        #expect(await bench.session.state == .disconnected, "seed \(seed)")
        #expect(await !bench.radio.isConnected, "seed \(seed)")
    }
}
