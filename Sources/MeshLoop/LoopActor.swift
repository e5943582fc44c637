// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// An actor without state of its own, pinned to a loop: lets a program or a test run a closure there.
public actor LoopActor {
    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    public init(_ loop: EventLoop) {
        self.loop = loop
    }

    /// Runs `body` on the loop.
    public func run<Result: Sendable, Failure: Error>(
        _ body: @Sendable (isolated LoopActor) async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        try await body(self)
    }
}
