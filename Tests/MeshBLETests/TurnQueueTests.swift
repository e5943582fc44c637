// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
import MeshLoop
import MeshTestSupport
import Testing

struct TurnQueueTests {
    @Test func `turns are had in the order in which they were asked for`() async throws {
        try await onLoop { actor in
            let queue = TurnQueue(loop: actor.loop)
            #expect(await queue.take())
            #expect(await queue.isContended == false)
            let (order, continuation) = AsyncStream.makeStream(of: Int.self)
            for number in 1...3 {
                Task(executorPreference: actor.loop.taskExecutor) {
                    _ = actor
                    if await queue.take() { continuation.yield(number) }
                    await queue.pass()
                }
            }
            while await !queue.isContended { await Task.yield() }
            await queue.pass()
            var iterator = order.makeAsyncIterator()
            for number in 1...3 { #expect(await iterator.next() == number) }
            while await !queue.isIdle { await Task.yield() }
        }
    }

    @Test func `who is cancelled has no turn, and holds up nobody`() async throws {
        try await onLoop { actor in
            let queue = TurnQueue(loop: actor.loop)
            #expect(await queue.take())
            let cancelled = Task(executorPreference: actor.loop.taskExecutor) {
                _ = actor
                return await queue.take()
            }
            while await !queue.isContended { await Task.yield() }
            cancelled.cancel()
            #expect(await cancelled.value == false)
            #expect(await queue.isContended == false)
            await queue.pass()
            #expect(await queue.isIdle)
        }
    }

    @Test func `an observation that is dropped ends`() async throws {
        try await onLoop { actor in
            let (ends, continuation) = AsyncStream.makeStream(of: Void.self)
            var observation: LoopObservation? = LoopObservation(on: actor.loop) { continuation.yield() }
            #expect(observation != nil)
            observation = nil
            var iterator = ends.makeAsyncIterator()
            #expect(await iterator.next() != nil)
        }
    }
}
