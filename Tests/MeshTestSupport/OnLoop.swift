// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop

/// Runs `body` on a new loop's thread and throws when it leaves a handle open.
///
/// In virtual time all of it stays on the loop, with its child tasks: the clock does not see what is elsewhere. A `Task` of
/// its own has to prefer the loop's executor.
public func onLoop<Result: Sendable>(
    time: LoopTime = .monotonic, _ body: @Sendable (isolated LoopActor) async throws -> Result
) async throws -> Result {
    let thread = LoopThread(time: time)
    let actor = LoopActor(thread.loop)
    do {
        let result =
            switch time {
            case .monotonic: try await actor.run(body)
            case .virtual:
                try await withTaskExecutorPreference(await actor.run { $0.loop.taskExecutor }) {
                    try await actor.run(body)
                }
            }
        try await thread.shutDown()
        return result
    } catch {
        try? await thread.shutDown()
        throw error
    }
}

extension EventLoop {
    /// Runs `work` when the queue has been gone through so many times: between two given jobs of a task that prefers the
    /// loop. From the loop's thread.
    public func perform(afterRounds rounds: Int, _ work: @escaping @Sendable () -> Void) {
        if rounds == 0 { work() } else { perform { self.perform(afterRounds: rounds - 1, work) } }
    }
}
