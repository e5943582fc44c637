// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
public import MeshTransportAPI

extension EventLoop {
    /// Runs `body`, and cancels it when the time is over; then, the error is `text`. Whatever happens, it returns when `body`
    /// has ended. From the loop's thread.
    public func within<Value: Sendable>(
        _ limit: Duration, _ text: String, isolation: isolated (any Actor)? = #isolation,
        _ body: @escaping @Sendable () async throws(GATTError) -> Value
    ) async throws(MeshError) -> Value {
        let work = Task(executorPreference: taskExecutor) { () async -> Result<Value, GATTError> in
            do throws(GATTError) {
                return .success(try await body())
            } catch {
                return .failure(error)
            }
        }
        let timer = LoopTimer(self)
        timer.schedule(after: limit) { work.cancel() }
        let result = await withTaskCancellationHandler {
            // A closure runs on the caller's actor only if it captures it; otherwise it would leave the loop.
            _ = isolation
            return await work.value
        } onCancel: {
            work.cancel()
        }
        timer.cancel()
        switch result {
        case .success(let value): return value
        case .failure(let error) where error.reason == .cancelled && !Task.isCancelled:
            throw MeshError(.connectionTimeout, text, cause: error.error, context: error.error.context)
        case .failure(let error): throw error.error
        }
    }
}
