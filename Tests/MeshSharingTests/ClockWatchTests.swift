// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshLoop
import MeshRuntime
import Synchronization
import Testing

@testable import MeshSharing

/// The radio's clock, long after the beginning of the link.
@Suite(.timeLimit(.minutes(20)))
struct ClockWatchTests {
    private static let now: UInt32 = 1_800_000_000
    /// What a radio without a battery for its clock starts with (firmware `VolatileRTCClock`).
    private static let atStart: UInt32 = 1_715_770_351
    private static let setNow = Data([0x06]) + ContactSharingTests.number(now)

    /// A radio's clock that stands still and can be set.
    private final class Clock: Sendable {
        private let time: Mutex<UInt32>
        private let keepsTime: Bool

        init(_ time: UInt32, keepsTime: Bool = true) {
            self.time = Mutex(time)
            self.keepsTime = keepsTime
        }

        func set(_ time: UInt32) { self.time.withLock { $0 = time } }
        var isAtStart: Bool { time.withLock { $0 == ClockWatchTests.atStart } }

        func answer(_ command: Data) -> [Data] {
            switch command.first {
            case 0x05: return [Data([0x09]) + ContactSharingTests.number(time.withLock { $0 })]
            case 0x06:
                if keepsTime { set(ClockWatchTests.now) }
                return [Data([0x00])]
            default: return AnsweringRadio.usual(command)
            }
        }
    }

    /// Lets time pass until the host has said a number of things to the radio, or what is looked for.
    private static func frames(_ count: Int, to bench: isolated SharingBench, until command: Data? = nil) async {
        var sent = bench.bus.subscribe(EventFilter(types: ["frame.tx"])).makeAsyncIterator()
        for _ in 0..<count {
            if let command, await bench.radio.received.contains(command) { return }
            _ = await sent.next()
        }
    }

    @Test func `it is set when the host gets to know the time`() async throws {
        let clock = Clock(Self.atStart)
        try await SharingBench.run(answers: clock.answer) { bench in
            await Self.frames(5, to: bench)
            #expect(await !bench.radio.received.contains { $0.first == 0x06 })
            bench.clock.set(.seconds(Int64(Self.now)))
            await Self.frames(20, to: bench, until: Self.setNow)
            #expect(await bench.radio.received.contains(Self.setNow))
            #expect(await bench.radio.connects == 1)
        }
    }

    @Test func `a message that the radio gives out as its restart shows is kept`() async throws {
        let clock = Clock(Self.now)
        let (askTime, next) = (Data([0x05]), Data([0x0A]))
        // After its restart it answers what the test says.
        let answers: @Sendable (Data) -> [Data] = {
            clock.isAtStart && [askTime, next].contains($0) ? [] : clock.answer($0)
        }
        try await SharingBench.run(wallClock: .seconds(Int64(Self.now)), answers: answers) { bench in
            let radio = bench.radio
            await Self.frames(5, to: bench)
            var sent = bench.bus.subscribe(EventFilter(types: ["frame.tx"])).makeAsyncIterator()
            let before = await radio.received.count
            clock.set(Self.atStart)
            while await radio.received.dropFirst(before).last != askTime { _ = await sent.next() }
            // The question for a message waits behind that for the time, and goes out with its answer.
            await radio.push(Data([0x83]))
            await radio.push(Data([0x09]) + ContactSharingTests.number(Self.atStart))
            while await radio.received.last != next { _ = await sent.next() }
            // Virtual time: the restart is known by then.
            try await bench.loop.sleep(for: .milliseconds(10))
            #expect(await radio.connects == 1)
            _ = try await bench.event("message.direct") { await radio.push(MessageSharingTests.message(9)) }
        }
    }

    @Test func `one that went back shows a restart, and the radio is greeted anew`() async throws {
        let clock = Clock(Self.now)
        try await SharingBench.run(wallClock: .seconds(Int64(Self.now)), answers: clock.answer) { bench in
            let radio = bench.radio
            await Self.frames(5, to: bench)
            _ = try await bench.event("link.ready") { clock.set(Self.atStart) }
            #expect(await radio.connects == 2)
            await Self.frames(20, to: bench, until: Self.setNow)
            #expect(await radio.received.contains(Self.setNow))
        }
    }

    @Test func `one that keeps no time is not taken for a restart again and again`() async throws {
        let clock = Clock(Self.atStart, keepsTime: false)
        try await SharingBench.run(wallClock: .seconds(Int64(Self.now)), answers: clock.answer) { bench in
            await Self.frames(60, to: bench)
            #expect(await bench.radio.connects == 2)
        }
    }

    @Test func `it is due after an hour, or when the host's clock was set`() {
        var watch = ClockWatch()
        #expect(!watch.isDue(uptime: .seconds(9_000), wallClock: .seconds(9_000)))
        watch.began(uptime: .seconds(100), wallClock: .seconds(1_000))
        #expect(!watch.isDue(uptime: .seconds(3_699), wallClock: .seconds(4_599)))
        #expect(watch.isDue(uptime: .seconds(3_700), wallClock: .seconds(4_600)))
        for moved in [-3, 3] as [Int64] {
            #expect(watch.isDue(uptime: .seconds(200), wallClock: .seconds(1_100 + moved)))
        }
        for moved in [-2, 2] as [Int64] {
            #expect(!watch.isDue(uptime: .seconds(200), wallClock: .seconds(1_100 + moved)))
        }
    }

    @Test func `a time counts as gone back only on the same link, and beyond a moment`() {
        var clock = RadioClock()
        #expect(clock.wentBack(to: 1) == nil)
        _ = clock.told(1_000, now: .zero)
        #expect(clock.wentBack(to: 1_000) == false)
        #expect(clock.wentBack(to: 996) == false)
        #expect(clock.wentBack(to: 995) == true)
        clock.linkLost()
        #expect(clock.wentBack(to: 1) == nil)
    }
}
