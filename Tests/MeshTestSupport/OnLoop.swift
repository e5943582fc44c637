// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop

/// Runs `body` on a new loop's thread and throws when it leaves a handle open.
public func onLoop<Result: Sendable>(
    _ body: @Sendable (isolated LoopActor) async throws -> Result
) async throws -> Result {
    let thread = LoopThread()
    do {
        let result = try await LoopActor(thread.loop).run(body)
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
