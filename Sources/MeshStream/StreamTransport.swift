// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshLoop
public import MeshTransportAPI

/// A transport whose links are byte streams in the framing of companion radios: everything but how a stream is opened and what
/// its end means.
///
/// It is the driver of ``StreamLinkStateMachine``, an actor on the loop. While connected it must not be dropped without
/// `disconnect()`.
public protocol StreamTransport: Actor, DirectTransport {
    /// Made with the transport, and kept.
    var link: StreamLink { get }

    /// Opens a stream, ready for the first frame. Whatever else was begun has ended when this returns or throws. It ends
    /// soon when the task is cancelled.
    func openStream() async throws(MeshError) -> OpenedStream

    /// What an end means that nobody asked for; asked while ``link`` still has it.
    func reason(for loss: StreamLinkStateMachine.Loss, _ error: LoopError?) -> MeshError

    /// The link is up, and nothing was read yet.
    func linkOpened(_ stream: LoopStream)

    /// What happened on the link, for machines that the transport has beside this one.
    func linkNoted(_ happening: CompanionStream.Happening)

    /// There is no link and no attempt any more. Nil: the end was asked for.
    func linkClosed(_ error: MeshError?)

    /// Returns when nothing is under way any more that the last link began; `disconnect` waits for it.
    func linkReleased() async
}

/// What an attempt has opened.
public struct OpenedStream {
    public var stream: LoopStream
    /// What answers at its other end: an address, a file.
    public var peer: String

    public init(_ stream: LoopStream, peer: String) {
        self.stream = stream
        self.peer = peer
    }
}

extension StreamTransport {
    public func linkOpened(_ stream: LoopStream) {}
    public func linkNoted(_ happening: CompanionStream.Happening) {}
    public func linkClosed(_ error: MeshError?) {}
    public func linkReleased() async {}

    // MARK: Connecting

    public func connect() async throws {
        switch link.machine.connectRequested() {
        case .refuse:
            throw link.error(
                .invalidArgument, "there is a link to \(link.name) already, or one is being made or ended", "connect")
        case .startAttempt(let generation):
            // A task of its own, so that `disconnect` can cancel it too; it ends before this function does.
            let attempt = Task(executorPreference: link.loop.taskExecutor) { await self.runAttempt(generation) }
            link.attempt = attempt
            let result = await withTaskCancellationHandler {
                await attempt.value
            } onCancel: {
                attempt.cancel()
            }
            try result.get()
        }
    }

    private func runAttempt(_ generation: UInt64) async -> Result<Void, MeshError> {
        defer { link.attempt = nil }
        link.report(.phase(.connecting))
        let error: MeshError
        do {
            let opened = try await openStream()
            switch link.machine.attemptSucceeded(
                generation: generation, isCancelled: Task.isCancelled, now: link.loop.now)
            {
            case .bringLinkUp:
                bringUp(opened, generation)
                return .success(())
            case .closeStream:
                opened.stream.close()
                error = link.cancelled
            }
        } catch let failure {
            link.machine.attemptFailed(generation: generation)
            error = failure
        }
        link.lastError = error
        link.report(.phase(.idle))
        linkClosed(error)
        return .failure(error)
    }

    private func bringUp(_ opened: OpenedStream, _ generation: UInt64) {
        link.present = StreamLink.Present(
            generation: generation, stream: opened.stream, peer: opened.peer, since: link.loop.now)
        link.connections += 1
        linkOpened(opened.stream)
        link.frames.begin(opened.stream) { self.happened($0, generation) }
        link.report(.phase(.connected))
        link.report(.up(LinkInfo(maximumFrameLength: link.maximumFrame, peer: opened.peer)))
    }

    // MARK: Ending

    /// Frames that the kernel has not taken by then are lost: closing would otherwise wait for a device that takes nothing.
    public func disconnect() async {
        switch link.machine.disconnectRequested() {
        case .nothing: break
        case .cancelAttempt:
            let attempt = link.attempt
            attempt?.cancel()
            _ = await attempt?.value
        case .closeLink:
            link.report(.phase(.disconnecting))
            closeLink(reason: nil)
        }
        await linkReleased()
    }

    private func perform(_ action: StreamLinkStateMachine.LossAction, _ error: LoopError? = nil) {
        switch action {
        case .nothing: break
        case .closeLink(let loss): closeLink(reason: reason(for: loss, error))
        }
    }

    /// Closes the stream, says so, then ends the stream of frames: at once when this side asked for it, else behind the frames
    /// that came before the loss.
    private func closeLink(reason: MeshError?) {
        guard link.present != nil else { return }
        link.present = nil
        link.writeTimer = nil
        link.lastError = reason
        // A device that takes nothing gets no more of it later.
        link.frames.end(discarding: reason == nil, reset: reason?.code == .operationTimeout) {
            link.report(.down(reason: reason))
        }
        link.report(.phase(.idle))
        linkClosed(reason)
    }

    // MARK: On the link

    private func happened(_ happening: CompanionStream.Happening, _ generation: UInt64) {
        guard link.present?.generation == generation else { return }
        switch happening {
        case .framesReceived, .frameSent: break
        case .bytesSkipped(let count): link.report(.bytesSkipped(count: count))
        case .writeBegan:
            link.machine.writeStarted(generation: generation, now: link.loop.now)
            watchWrites()
        case .writeEnded: link.machine.writeFinished(generation: generation, now: link.loop.now)
        case .ended(let error):
            return perform(link.machine.linkEnded(generation: generation, now: link.loop.now), error)
        }
        linkNoted(happening)
    }

    private func watchWrites() {
        guard link.present != nil, let deadline = link.machine.nextDeadline else { return }
        let timer = link.writeTimer ?? LoopTimer(link.loop)
        link.writeTimer = timer
        // A timer that is early finds out when it fires; setting it anew at each write costs more.
        if timer.isScheduled { return }
        timer.schedule(after: deadline - link.loop.now) {
            self.perform(self.link.machine.deadlineReached(now: self.link.loop.now))
            self.watchWrites()
        }
    }

    // MARK: Frames

    public var receivedData: AsyncStream<Data> {
        guard let inbox = link.frames.inbox else { return AsyncStream { $0.finish() } }
        return AsyncStream(unfolding: { await self.nextFrame(from: inbox) })
    }

    private func nextFrame(from inbox: FrameQueue) async -> Data? {
        let loop = link.loop
        let frame = await inbox.next(isolation: self) { loop.perform($0) }
        link.frames.readOn()
        return frame
    }

    public func deliverFrames(to handler: @escaping @Sendable (Data) -> Bool) {
        link.frames.deliver(to: handler)
    }

    public func resumeDelivery() {
        link.frames.resumeDelivery()
    }

    public func send(_ data: Data) async throws {
        guard let present = link.present else {
            throw link.error(.notConnected, "there is no link to \(link.name); connect first", "send")
        }
        do throws(CompanionStream.SendFailure) {
            try await link.frames.send(data, .init(operation: "send", peer: link.name))
        } catch {
            switch error {
            case .refused(let refusal): throw refusal
            case .lost(let loss):
                // Also when the reader has not noticed the end yet.
                happened(.ended(loss), present.generation)
                throw link.lastError?.adding(operation: "send")
                    ?? link.error(
                        .linkClosed, "the link to \(link.name) was closed before the frame was sent", "send",
                        cause: loss)
            }
        }
    }

    public nonisolated func sendAtOnce(_ frame: Data) -> Bool {
        assumeIsolated { $0.link.frames.sendAtOnce(frame) }
    }

    // MARK: Facts

    public var isConnected: Bool { link.present != nil }

    /// A stream keeps order and nothing coalesces, so several commands may be under way (companion-protocol §1.1).
    public var supportsPipelinedReads: Bool { true }
}

extension StreamLink {
    /// The attempt was given up by who asked for it.
    public var cancelled: MeshError {
        error(.cancelled, "the attempt to connect to \(name) was cancelled", "connect")
    }
}
