// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshLoop
import MeshTestSupport
import Testing

struct LoopTests {
    @Test func `an actor's job runs on the loop's thread`() async throws {
        let isThere = try await onLoop { actor in actor.loop.isOnLoop }
        #expect(isThere)
        let thread = LoopThread()
        #expect(!thread.loop.isOnLoop)
        try await thread.shutDown()
    }

    @Test func `jobs from many tasks all run`() async throws {
        let sum = try await onLoop { actor in
            await withTaskGroup(of: Int.self) { group in
                for number in 1...10_000 {
                    group.addTask { @concurrent in await actor.run { _ in number } }
                }
                var sum = 0
                while let number = await group.next() { sum += number }
                return sum
            }
        }
        #expect(sum == 50_005_000)
    }

    @Test func `work at the end of a turn runs after the queued jobs`() async throws {
        let order = try await onLoop { actor in
            let arrival = Arrival<[String]>(actor.loop)
            final class Notes { var list: [String] = [] }
            let notes = Notes()
            actor.loop.atEndOfTurn {
                notes.list.append("end")
                arrival.arrive(notes.list)
            }
            actor.loop.performLater { notes.list.append("first") }
            actor.loop.performLater { notes.list.append("second") }
            return await arrival.get()
        }
        #expect(order == ["first", "second", "end"])
    }

    @Test func `two loop objects on one uv loop wake each other`() async throws {
        // A module's own EventLoop wraps the host's loop; what one appends must run though the other has had its turn.
        let rounds = try await onLoop { actor in
            let module = LoopActor(EventLoop(wrapping: actor.loop.unsafeUVLoop))
            var rounds = 0
            for _ in 0..<1_000 { rounds += await module.run { _ in 1 } }
            try module.loop.shutDown()
            return rounds
        }
        #expect(rounds == 1_000)
    }

    @Test func `a timer fires once and not after it was cancelled`() async throws {
        let fired = try await onLoop { actor in
            final class Count { var value = 0 }
            let count = Count()
            let cancelled = LoopTimer(actor.loop)
            cancelled.schedule(after: .milliseconds(1)) { count.value += 100 }
            cancelled.cancel()
            let timer = LoopTimer(actor.loop)
            timer.schedule(after: .milliseconds(2)) { count.value += 1 }
            #expect(timer.isScheduled)
            try await actor.loop.sleep(for: .milliseconds(10))
            #expect(!timer.isScheduled)
            return count.value
        }
        #expect(fired == 1)
    }

    @Test func `a timer is never early`() async throws {
        try await onLoop { actor in
            let loop = actor.loop
            // At as many places between the milliseconds of libuv's clock.
            for count in 1...100 {
                let delay = Duration.microseconds(1_000 + 37 * count)
                let begin = loop.now
                let fired = LoopResult<Duration>()
                let timer = LoopTimer(loop)
                timer.schedule(after: delay) { fired.set(loop.now) }
                #expect(await fired.get() - begin >= delay)
            }
        }
    }

    @Test(arguments: [
        Duration.seconds(Int64.max), .seconds(Int64.max) + .seconds(Int64.max), .seconds(Int64.max / 1_000),
        .seconds(315_360_000),
    ])
    func `a timer takes the longest durations`(_ delay: Duration) async throws {
        try await onLoop { actor in
            let timer = LoopTimer(actor.loop)
            timer.schedule(after: delay) { Issue.record("fired") }
            #expect(timer.isScheduled)
            timer.schedule(after: .zero - delay) {}
            try await actor.loop.sleep(for: .milliseconds(5))
            #expect(!timer.isScheduled)
        }
    }

    @Test func `a network is what one machine cannot choose by itself`() throws {
        let networks = [
            "192.0.2.7": "192.0.2.7", "2001:db8:1:2:3:4:5:6": "20010db800010002/64",
            "2001:db8:1:2::9": "20010db800010002/64", "2001:db8:1:3::9": "20010db800010003/64",
            "::1": "0000000000000000/64",
        ]
        for (address, network) in networks {
            #expect(try #require(SocketAddress(ip: address, port: 5_000)).network == network)
        }
    }

    @Test func `localhost is the loopback addresses, without the resolver`() async throws {
        let gate = Gate()
        let addresses = try await onLoop { actor in
            let loop = actor.loop
            // More than the pool has threads: what goes there now waits.
            let work = (0..<16).map { _ in Task { await loop.blocking { gate.wait() } } }
            let addresses = try await loop.resolve(host: "LocalHost", port: 5_000)
            gate.open()
            for each in work { await each.value }
            return addresses
        }
        #expect(addresses.first?.description == "127.0.0.1:5000")
        #expect(addresses.allSatisfy { $0.isLoopback })
    }

    @Test func `a look-up that is cancelled before it begins ends as cancelled`() async throws {
        let kind = try await onLoop { actor in
            let loop = actor.loop
            let task = Task { () -> LoopError.Kind? in
                do throws(LoopError) {
                    _ = try await loop.resolve(host: "name.invalid", port: 1)
                    return nil
                } catch {
                    return error.kind
                }
            }
            task.cancel()
            return await task.value
        }
        #expect(kind == .cancelled)
    }

    @Test func `a loop that the pool still works for shuts down without a complaint`() async throws {
        let gate = Gate()
        let thread = LoopThread()
        let loop = thread.loop
        _ = Task { await loop.blocking { gate.wait() } }
        await gate.waitUntilEntered()
        try await thread.shutDown()
        #expect(loop.hasUnfinishedWork)
        gate.open()
    }

    @Test func `a closed loop takes no descriptor, and goes without a trace`() {
        // No other test of this suite need hold still: a loop takes some, each of these would.
        let loops = (0..<1_200).map { _ in EventLoop.closed() }
        #expect(loops.allSatisfy { $0.isOnLoop && $0.openHandles == [] })
    }

    @Test func `a dropped timer does not fire`() async throws {
        try await onLoop { actor in
            var timer: LoopTimer? = LoopTimer(actor.loop)
            timer?.schedule(after: .milliseconds(1)) { Issue.record("fired") }
            timer = nil
            try await actor.loop.sleep(for: .milliseconds(5))
        }
    }

    @Test func `a cancelled sleep ends at once`() async throws {
        let threw = try await onLoop { actor in
            let loop = actor.loop
            let task = Task {
                do throws(CancellationError) {
                    try await loop.sleep(for: .seconds(3_600))
                    return false
                } catch { return true }
            }
            task.cancel()
            return await task.value
        }
        #expect(threw)
    }

    @Test func `a sleep ends wherever its cancellation falls`() async throws {
        try await onLoop { actor in
            let loop = actor.loop
            for rounds in 0..<16 {
                let task = Task(executorPreference: loop.taskExecutor) {
                    do throws(CancellationError) {
                        try await loop.sleep(for: .seconds(3_600))
                        return false
                    } catch { return true }
                }
                loop.perform(afterRounds: rounds) { task.cancel() }
                #expect(await task.value)
            }
        }
    }

    @Test func `a result reaches its waiter whichever comes first`() async throws {
        try await onLoop { actor in
            let loop = actor.loop
            for rounds in 0..<16 {
                let result = LoopResult<Int>()
                let task = Task(executorPreference: loop.taskExecutor) {
                    _ = actor
                    return await result.get()
                }
                loop.perform(afterRounds: rounds) { result.set(rounds) }
                #expect(await task.value == rounds)
            }
        }
    }

    @Test func `blocking work runs elsewhere and its result comes back`() async throws {
        let wasElsewhere = try await onLoop { actor in
            let loop = actor.loop
            let result: Bool = await loop.blocking { !loop.isOnLoop }
            return result
        }
        #expect(wasElsewhere)
        await #expect(throws: LoopError.self) {
            try await onLoop { actor in
                try await actor.loop.blocking { () throws(LoopError) -> Void in
                    throw LoopError(kind: .system, operation: "test", detail: "")
                }
            }
        }
    }

    @Test func `a handle left open is named at shutdown`() async throws {
        final class Keeper: @unchecked Sendable { var timer: LoopTimer? }  // touched on the loop's thread only
        let keeper = Keeper()
        let thread = LoopThread()
        await LoopActor(thread.loop).run { actor in
            let timer = LoopTimer(actor.loop)
            timer.schedule(after: .seconds(3_600)) {}
            keeper.timer = timer
        }
        let error = await #expect(throws: LoopError.self) { try await thread.shutDown() }
        #expect(error?.kind == .leak)
        #expect(error?.detail == "timer")
        // Its memory belongs to the closed loop; dropping it would close it twice.
        _ = Unmanaged.passRetained(keeper.timer!)
    }

    @Test func `a signal calls its closure`() async throws {
        let arrived = try await onLoop { actor in
            let arrival = Arrival<Bool>(actor.loop)
            let signal = try LoopSignal(actor.loop, SIGUSR2) { arrival.arrive(true) }
            kill(getpid(), SIGUSR2)
            defer { withExtendedLifetime(signal) {} }
            return await arrival.get()
        }
        #expect(arrived)
    }

    @Test func `a child process ends with its status, or by a signal`() async throws {
        let (exit, killed) = try await onLoop { actor in
            let arrival = Arrival<LoopProcess.Exit>(actor.loop)
            let child = try LoopProcess(
                actor.loop, arguments: ["sh", "-c", "exit $CODE"], environment: ["PATH": "/bin:/usr/bin", "CODE": "7"],
                descriptors: [nil, nil, nil]
            ) { arrival.arrive($0) }
            let exit = await arrival.get()
            #expect(!child.isRunning)
            child.signal(SIGKILL)
            let second = Arrival<LoopProcess.Exit>(actor.loop)
            let sleeper = try LoopProcess(
                actor.loop, arguments: ["sleep", "1000"], environment: ["PATH": "/bin:/usr/bin"],
                descriptors: [nil, nil, nil]
            ) { second.arrive($0) }
            sleeper.signal(SIGTERM)
            return (exit, await second.get())
        }
        #expect(exit.status == 7 && exit.signal == 0)
        #expect(killed.status == 0 && killed.signal == SIGTERM)
    }

    @Test func `a program that is not there is a clear error`() async throws {
        let error = await #expect(throws: LoopError.self) {
            try await onLoop { actor in
                _ = try LoopProcess(actor.loop, arguments: ["/no/such/program"], environment: [:], descriptors: []) {
                    _ in
                }
            }
        }
        #expect(error?.kind == .notFound)
        #expect(error?.operation == "start /no/such/program")
    }

    @Test func `a descriptor that cannot be polled is refused`() async throws {
        try await onLoop { actor in
            for descriptor in [-1, open("/proc/self/exe", O_RDONLY | O_CLOEXEC)] {
                #expect(throws: LoopError.self) {
                    _ = try LoopPoll(actor.loop, descriptor: descriptor) { _, _ in }
                }
                close(descriptor)
            }
        }
    }

    @Test func `a poll tells when a descriptor can be read`() async throws {
        let events = try await onLoop { actor in
            var pair: [Int32] = [0, 0]
            pipe(&pair)
            defer { for descriptor in pair { close(descriptor) } }
            let arrival = Arrival<LoopPoll.Events>(actor.loop)
            let poll = try LoopPoll(actor.loop, descriptor: pair[0]) { events, _ in arrival.arrive(events) }
            poll.wait(for: .readable)
            write(pair[1], "x", 1)
            let events = await arrival.get()
            poll.wait(for: [])
            return events
        }
        #expect(events == .readable)
    }
}
