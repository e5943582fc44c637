// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshLoop
import MeshRuntime
import MeshTransportAPI

/// What the link is for: greets the radio, and holds the link good when it answers. Then frames go to the bus, and nowhere else.
///
/// A device with another protocol has its handshake here; one without any takes `DrainSession`.
actor Greeting: LinkSession {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    /// Of the present link: told true by the answer, false by the end.
    private var answer: LoopResult<Bool>?

    init(loop: EventLoop) {
        self.loop = loop
    }

    nonisolated func linkOpened(_ link: EstablishedLink) {
        assumeIsolated { $0.answer = LoopResult() }
    }

    func linkEstablished(_ link: EstablishedLink) async throws(MeshError) {
        guard let answer else { return }
        do {
            try await link.send(CompanionFrame.appStart(name: "embedded"))
        } catch {
            throw MeshError(.handshakeFailed, "the radio was not greeted", cause: error)
        }
        let isAnswered = await withTaskCancellationHandler {
            await answer.get(isolation: self)
        } onCancel: {
            loop.perform { self.assumeIsolated { $0.settle(answer, false) } }
        }
        if !isAnswered { throw MeshError(.handshakeFailed, "the radio did not answer in time") }
    }

    nonisolated func frameReceived(_ frame: Data) {
        assumeIsolated { greeting in
            // Its name and settings are what a radio says first.
            guard case .selfInfo? = try? CompanionReply(decoding: frame) else { return }
            if let answer = greeting.answer { greeting.settle(answer, true) }
        }
    }

    nonisolated func linkLost(reason: MeshError?) {
        assumeIsolated { greeting in
            if let answer = greeting.answer { greeting.settle(answer, false) }
        }
    }

    /// Nothing is left then: a greeting ends with its answer.
    nonisolated func linkEnded() {}

    /// Each answer is told once: by whichever comes first.
    private func settle(_ settled: LoopResult<Bool>, _ isAnswered: Bool) {
        guard answer === settled else { return }
        answer = nil
        settled.set(isAnswered)
    }
}
