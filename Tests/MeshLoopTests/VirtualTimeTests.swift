// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshLoop
import MeshTestSupport
import Testing

/// What follows from what, in virtual time. Where a test wants time to pass it asks for hours: a clock that went by the
/// machine's would show.
@Suite(.timeLimit(.minutes(10))) struct VirtualTimeTests {
    /// What happened, each with the hours since the beginning. Used on the loop's thread only.
    private final class Notes {
        private let loop: EventLoop
        private let begin: Duration
        private(set) var list: [String] = []

        init(_ loop: EventLoop) {
            self.loop = loop
            begin = loop.now
        }

        func add(_ word: String) {
            list.append("\(word) \((loop.now - begin) / .seconds(3_600))")
        }
    }

    private func hours(_ count: Double) -> Duration { .seconds(3_600 * count) }

    @Test func `the clock goes from timer to timer`() async throws {
        let notes = try await onLoop(time: .virtual) { actor in
            let notes = Notes(actor.loop)
            let timers = [3.0, 1, 2].map { [hours] count in
                let timer = LoopTimer(actor.loop)
                timer.schedule(after: hours(count)) { notes.add("timer") }
                return timer
            }
            notes.add("begin")
            try await actor.loop.sleep(for: hours(4))
            notes.add("end")
            #expect(timers.allSatisfy { !$0.isScheduled })
            return notes.list
        }
        #expect(notes == ["begin 0.0", "timer 1.0", "timer 2.0", "timer 3.0", "end 4.0"])
    }

    @Test func `equal deadlines fire in the order in which they were set`() async throws {
        let notes = try await onLoop(time: .virtual) { actor in
            let notes = Notes(actor.loop)
            let timers = (0..<5).map { _ in LoopTimer(actor.loop) }
            for (index, timer) in timers.enumerated() { timer.schedule(after: hours(1)) { notes.add("\(index)") } }
            // Set once more, it is the last.
            timers[1].schedule(after: hours(1)) { notes.add("1") }
            try await actor.loop.sleep(for: hours(1))
            return notes.list
        }
        #expect(notes == ["0 1.0", "2 1.0", "3 1.0", "4 1.0", "1 1.0"])
    }

    @Test func `a timer that is cancelled or dropped by another one does not fire`() async throws {
        let notes = try await onLoop(time: .virtual) { actor in
            let notes = Notes(actor.loop)
            let first = LoopTimer(actor.loop)
            let second = LoopTimer(actor.loop)
            final class Box { var timer: LoopTimer? }
            let third = Box()
            third.timer = LoopTimer(actor.loop)
            first.schedule(after: hours(1)) {
                notes.add("first")
                second.cancel()
                third.timer = nil
            }
            second.schedule(after: hours(1)) { notes.add("second") }
            third.timer?.schedule(after: hours(1)) { notes.add("third") }
            try await actor.loop.sleep(for: hours(2))
            #expect(!second.isScheduled)
            return notes.list
        }
        #expect(notes == ["first 1.0"])
    }

    @Test func `a timer that is set by one that fires has its turn after the jobs of that one`() async throws {
        let notes = try await onLoop(time: .virtual) { actor in
            let loop = actor.loop
            let notes = Notes(loop)
            let timer = LoopTimer(loop)
            timer.schedule(after: hours(1)) {
                notes.add("first")
                loop.performLater { notes.add("job") }
                timer.schedule(after: .zero) { notes.add("second") }
            }
            let other = LoopTimer(loop)
            other.schedule(after: hours(1)) { notes.add("other") }
            try await loop.sleep(for: hours(2))
            return notes.list
        }
        #expect(notes == ["first 1.0", "other 1.0", "job 1.0", "second 1.0"])
    }

    @Test func `a timer that sets itself again keeps its pace`() async throws {
        let rounds = try await onLoop(time: .virtual) { actor in
            final class Pace {
                var rounds = 0
                let timer: LoopTimer
                init(_ loop: EventLoop) { timer = LoopTimer(loop) }
                func go() {
                    timer.schedule(after: .seconds(60)) {
                        self.rounds += 1
                        self.go()
                    }
                }
            }
            let pace = Pace(actor.loop)
            pace.go()
            try await actor.loop.sleep(for: hours(10) + .seconds(1))
            pace.timer.cancel()
            return pace.rounds
        }
        #expect(rounds == 600)
    }

    @Test func `the clock stands still while jobs follow one another`() async throws {
        try await onLoop(time: .virtual) { actor in
            let begin = actor.loop.now
            let timer = LoopTimer(actor.loop)
            timer.schedule(after: .milliseconds(1)) { Issue.record("fired") }
            for _ in 0..<10_000 { await Task.yield() }
            #expect(actor.loop.now == begin)
            timer.cancel()
        }
    }

    @Test func `the clock stands still while a connection is made and bytes go to and fro`() async throws {
        try await onLoop(time: .virtual) { actor in
            let loop = actor.loop
            let begin = loop.now
            let address = SocketAddress(unixPath: "/tmp/virtual-time-\(UInt64.random(in: 0 ... .max))")
            let timer = LoopTimer(loop)
            timer.schedule(after: .milliseconds(1)) { Issue.record("fired") }
            // No jobs from here on: each side reads and writes in the callback of its poll.
            final class Far { var stream: LoopStream? }
            let far = Far()
            let listener = try LoopListener(loop, on: address) { stream in
                far.stream = stream
                stream.startReading({ stream.write($0) }, onEnd: { _ in })
            }
            let near = LoopStream(unix: loop)
            try await near.connect(to: address)
            let isOver = LoopResult<Void>()
            var left = 1_000
            near.startReading(
                { bytes in
                    left -= 1
                    if left > 0 { near.write(bytes) } else { isOver.set(()) }
                }, onEnd: { _ in })
            [UInt8(1)].withUnsafeBytes { near.write($0) }
            await isOver.get()
            #expect(loop.now == begin)
            timer.cancel()
            near.close()
            far.stream?.close()
            _ = listener
        }
    }

    @Test func `the clock waits for work on other threads`() async throws {
        let gate = Gate()
        try await onLoop(time: .virtual) { actor in
            let loop = actor.loop
            let begin = loop.now
            let timer = LoopTimer(loop)
            timer.schedule(after: .milliseconds(1)) { Issue.record("fired") }
            async let work: Void = loop.blocking { gate.wait() }
            await gate.waitUntilEntered()
            gate.open()
            await work
            #expect(loop.now == begin)
            timer.cancel()
            // And goes on afterwards.
            try await loop.sleep(for: hours(1))
            #expect(loop.now == begin + hours(1))
        }
    }

    @Test func `the clock waits for a child process`() async throws {
        try await onLoop(time: .virtual) { actor in
            let loop = actor.loop
            let begin = loop.now
            let timer = LoopTimer(loop)
            timer.schedule(after: .milliseconds(1)) { Issue.record("fired") }
            let exit = LoopResult<LoopProcess.Exit>()
            let child = try LoopProcess(
                loop, arguments: ["/bin/true"], environment: [:], descriptors: [nil, nil, nil]
            ) { exit.set($0) }
            #expect(await exit.get().status == 0)
            #expect(loop.now == begin)
            timer.cancel()
            try await loop.sleep(for: hours(1))
            #expect(loop.now == begin + hours(1))
            _ = child
        }
    }

    @Test func `a sleep that is cancelled takes no time`() async throws {
        try await onLoop(time: .virtual) { actor in
            let loop = actor.loop
            let begin = loop.now
            let sleeper = Task(executorPreference: loop.taskExecutor) { try await loop.sleep(for: .seconds(60)) }
            let other = Task(executorPreference: loop.taskExecutor) {
                _ = actor
                try await loop.sleep(for: .seconds(30))
                sleeper.cancel()
            }
            await #expect(throws: CancellationError.self) { try await sleeper.value }
            try await other.value
            #expect(loop.now == begin + .seconds(30))
        }
    }

    @Test func `a timer is an open handle of its loop`() async throws {
        try await onLoop(time: .virtual) { actor in
            let timer = LoopTimer(actor.loop)
            timer.schedule(after: .seconds(60)) { Issue.record("fired") }
            #expect(actor.loop.openHandles == ["timer"])
            timer.cancel()
        }
    }
}
