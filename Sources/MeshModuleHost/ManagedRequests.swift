// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshLoop

/// What was asked of one module instance with `manage` and has not been answered.
///
/// ```
/// waiting ──managed──────────────────────────────▶ over
///    │ deadline, or its asker gave up: manage_cancel
///    ▼
/// ending ──managed, or the grace has passed──────▶ over
/// ```
///
/// An asker gets its answer only when the module has ended what it began, or has had the time to. Used on the loop's
/// thread only.
final class ManagedRequests {
    /// How a request ended.
    struct Answer: Sendable {
        var status: mh_status
        /// JSON, perhaps not valid.
        var result: Data
    }

    private struct Request {
        var asker: AsyncStream<Answer>.Continuation
        var timer: LoopTimer
        /// Why it is being ended; nil while it waits.
        var ending: mh_status?
        /// Tells the module.
        var cancel: () -> mh_status
        var isOver: () -> Void
    }

    private let loop: EventLoop
    private let grace: Duration
    private var requests: [UInt64: Request] = [:]
    private var lastNumber: UInt64 = 0

    /// `grace` is how long a module may take to end what is not wanted any more.
    init(_ loop: EventLoop, grace: Duration) {
        self.loop = loop
        self.grace = grace
    }

    /// The number of the next request.
    func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    /// A request is about to be made. `cancel` is called when it is to end early, `isOver` when it has ended. The stream
    /// gives one answer.
    func open(
        _ number: UInt64, deadline: Duration, cancel: @escaping () -> mh_status, isOver: @escaping () -> Void
    ) -> AsyncStream<Answer> {
        let (answers, asker) = AsyncStream.makeStream(of: Answer.self)
        let timer = LoopTimer(loop)
        timer.schedule(after: deadline) { [unowned self] in self.end(number, because: MH_EDEADLINE) }
        requests[number] = Request(asker: asker, timer: timer, cancel: cancel, isOver: isOver)
        return answers
    }

    /// The module's answer. Success counts though it comes late; what else comes then is the echo of the cancelling.
    func answered(_ number: UInt64, _ status: mh_status, _ result: Data) {
        guard let request = requests[number] else { return }
        if let ending = request.ending, status != MH_OK {
            finish(number, Answer(status: ending, result: Data()))
        } else {
            finish(number, Answer(status: status, result: result))
        }
    }

    /// Nobody wants it any more.
    func end(_ number: UInt64, because reason: mh_status) {
        guard let request = requests[number], request.ending == nil else { return }
        requests[number]?.ending = reason
        request.timer.schedule(after: grace) { [unowned self] in
            self.finish(number, Answer(status: reason, result: Data()))
        }
        // MH_ECLOSED: its answer is on its way. Anything else: it cannot be cancelled.
        let status = request.cancel()
        if status != MH_OK, status != MH_ECLOSED { finish(number, Answer(status: reason, result: Data())) }
    }

    /// The instance is no more.
    func endAll() {
        for number in requests.keys.sorted() { finish(number, Answer(status: MH_ECLOSED, result: Data())) }
    }

    private func finish(_ number: UInt64, _ answer: Answer) {
        guard let request = requests.removeValue(forKey: number) else { return }
        request.timer.cancel()
        request.isOver()
        request.asker.yield(answer)
        request.asker.finish()
    }
}
