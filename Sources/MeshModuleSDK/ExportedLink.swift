// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshLoop
internal import MeshTransportAPI

/// One link of the module: a transport, the task that connects it and pumps its frames to the host, and the task that
/// sends.
///
/// `connecting ─link_up─▶ pumping ─stream ends, or disconnect─▶ closing ─link_down─▶ over`. All in one task, so that its
/// end is the end of everything the link began.
actor ExportedLink {
    /// A frame that the host handed over.
    private struct Outgoing {
        var cookie: UInt64
        var frame: Data
        var withoutResponse: Bool
    }

    /// How many frames of the host may wait for the transport.
    private static let sendLimit = 64

    private let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let id: mh_link
    private let host: HostHandle
    private let transport: any MeshTransport
    /// The transport again, where it can do without tasks.
    private let direct: (any DirectTransport)?
    private let reports: LinkReports
    /// The device's transport before this one, for other options: it must have ended first.
    private let predecessor: (any MeshTransport)?
    private let executor: LoopTaskExecutor
    private var task: Task<Void, Never>?
    private var isEnding = false
    /// The host had no room, and has not said since that it has.
    private var isHostFull = false
    private var receiver: CheckedContinuation<Void, Never>?
    private var outgoing: [Outgoing] = []
    private var head = 0
    private var hostWaits = false
    private var sending: Task<Void, Never>?
    private var lastDiagnostics = JSONValue.object([:])
    private var diagnosing: Task<Void, Never>?

    init(
        _ id: mh_link, loop: EventLoop, host: HostHandle, transport: any MeshTransport, reports: LinkReports,
        after predecessor: (any MeshTransport)?
    ) {
        self.id = id
        self.loop = loop
        self.host = host
        self.transport = transport
        direct = transport as? any DirectTransport
        self.reports = reports
        self.predecessor = predecessor
        executor = loop.taskExecutor
    }

    // MARK: Life

    /// Begins to connect; `ended` runs on the loop after `link_down`.
    func start(ended: @escaping @Sendable () -> Void) {
        // The whole life of the link, so that all of it, and of the transport's tasks below it, stays on the loop.
        task = Task(executorPreference: executor) {
            await self.run()
            ended()
        }
    }

    /// Ends the link or the attempt; `link_down` follows.
    func disconnect() {
        isEnding = true
        task?.cancel()
        receiver?.resume()
        receiver = nil
    }

    /// Waits until `link_down` has been said and nothing of the link runs.
    func finished() async {
        await task?.value
    }

    private func run() async {
        await predecessor?.disconnect()
        do {
            try await transport.connect()
        } catch {
            // Also for a transport that fails in its own way after a part of it is up.
            await transport.disconnect()
            return over(MeshError(wrapping: error))
        }
        host.linkUp(id, reports.facts.info)
        if !isEnding { await pump(transport.receivedData) }
        isEnding = true
        // A task that is cancelled already; a transport must be free to wait in `disconnect` all the same.
        await Task(executorPreference: executor) { [transport] in await transport.disconnect() }.value
        await sending?.value
        await diagnosing?.value
        over(reports.facts.reason)
    }

    private func over(_ error: MeshError?) {
        isEnding = true
        let error = error ?? (task?.isCancelled == true ? MeshError(.cancelled, "") : MeshError(.linkClosed, ""))
        reports.end()
        host.linkDown(id, error.code.abiStatus, detail: error.message)
    }

    // MARK: Frames from the device

    private func pump(_ frames: AsyncStream<Data>) async {
        if let direct {
            // By plain calls; the stream then only tells the end, and gives what the host had no room for until then.
            await direct.deliverFrames { [host, id] in host.receive(id, $0) != MH_AGAIN }
        }
        for await frame in frames {
            while host.receive(id, frame) == MH_AGAIN {
                isHostFull = true
                if isEnding { return }
                await withCheckedContinuation {
                    // The host may have said so before this began to wait.
                    if isHostFull, !isEnding { receiver = $0 } else { $0.resume() }
                }
            }
            if isEnding { return }
        }
    }

    /// The host has room again.
    func receiveReady() {
        isHostFull = false
        receiver?.resume()
        receiver = nil
        if let direct {
            Task(executorPreference: executor) { await direct.resumeDelivery() }
        }
    }

    // MARK: Frames to the device

    func send(_ frame: Data, cookie: UInt64, withoutResponse: Bool) -> mh_status {
        if isEnding { return MH_ECLOSED }
        // Not before a frame that still waits.
        if sending == nil, !withoutResponse, let direct, direct.sendAtOnce(frame) {
            host.sendDone(cookie, MH_OK)
            return MH_OK
        }
        if outgoing.count - head >= Self.sendLimit {
            hostWaits = true
            return MH_AGAIN
        }
        outgoing.append(Outgoing(cookie: cookie, frame: frame, withoutResponse: withoutResponse))
        if sending == nil {
            // Runs until it first waits: a transport that writes at once is done before this returns. One that has just said that
            // it cannot comes back on the loop, and not by way of a thread of the global pool.
            let task =
                direct == nil || withoutResponse
                ? Task.immediate { await self.sendAll() }
                : Task(executorPreference: executor) { await self.sendAll() }
            if head < outgoing.count { sending = task }
        }
        return MH_OK
    }

    private func sendAll() async {
        while head < outgoing.count {
            let next = outgoing[head]
            var status = MH_OK
            do {
                if next.withoutResponse {
                    try await transport.sendWithoutResponse(next.frame)
                } else {
                    try await transport.send(next.frame)
                }
            } catch {
                status = MeshError(wrapping: error).code.abiStatus
            }
            head += 1
            host.sendDone(next.cookie, status)
            if hostWaits, outgoing.count - head <= Self.sendLimit / 2 {
                hostWaits = false
                host.writable(id)
            }
            if head >= Self.sendLimit {
                outgoing.removeSubrange(..<head)
                head = 0
            }
        }
        outgoing.removeAll(keepingCapacity: true)
        head = 0
        sending = nil
    }

    // MARK: Diagnostics

    /// What the transport says of itself; of a moment ago if it must wait for something to say it.
    func diagnostics() -> JSONValue {
        if diagnosing == nil, let transport = transport as? any TransportDiagnosing, !isEnding {
            var isOver = false
            let task = Task.immediate {
                self.lastDiagnostics = await transport.diagnostics()
                self.diagnosing = nil
                isOver = true
            }
            if !isOver { diagnosing = task }
        }
        return lastDiagnostics
    }
}
