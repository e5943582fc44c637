// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshCrypto
public import MeshLoop
public import MeshTransportAPI

/// A local endpoint for programs that can neither speak TLS nor prove a token: each gets a connection of its own to a share of
/// another host, with both.
///
///     program ──TCP or Unix socket──▶ bridge ──TCP, TLS, proof──▶ share of a host far away
public actor ShareBridge {
    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let settings: BridgeSettings
    private let onEvent: @Sendable (BridgeEvent) -> Void
    private var context: TLSContext?
    private var listeners: [LoopListener] = []
    private var clients: [UInt64: BridgedClient] = [:]
    /// Those on their way to the share.
    private var connecting: [UInt64: Task<Void, Never>] = [:]
    private var lastClient: UInt64 = 0
    private var refusals = RefusalReports()

    /// `onEvent` is called on the loop.
    public init(loop: EventLoop, settings: BridgeSettings, onEvent: @escaping @Sendable (BridgeEvent) -> Void) {
        self.loop = loop
        self.settings = settings
        self.onEvent = onEvent
    }

    /// Listens. Throws when an address cannot be bound, or when what TLS trusts cannot be used. The share is not reached
    /// before somebody connects.
    public func start() throws(MeshError) {
        do throws(TLSError) {
            context = try settings.tls.map { (trust) throws(TLSError) in try TLSContext(trusting: trust) }
        } catch {
            throw MeshError(.configurationInvalid, error.description, cause: error)
        }
        for address in settings.addresses {
            do throws(LoopError) {
                listeners.append(
                    try LoopListener(loop, on: address) { stream in
                        self.assumeIsolated { $0.clientConnected(stream) }
                    })
            } catch {
                throw MeshError(listening: error, on: address, for: "bridge")
            }
        }
        for listener in listeners { onEvent(.listening(address: listener.address.description)) }
    }

    /// Closes everything; no event follows.
    public func stop() async {
        listeners = []
        for client in clients.values { client.close() }
        clients = [:]
        for task in connecting.values { task.cancel() }
        for task in connecting.values { await task.value }
    }

    private func clientConnected(_ stream: LoopStream) {
        lastClient += 1
        let id = lastClient
        guard clients.count < settings.maximumClients else {
            stream.close()
            if let count = refusals.refused(now: loop.now) {
                let error = MeshError(
                    .resourceExhausted, "\(settings.maximumClients) clients are connected already; \(count) refused")
                onEvent(.failed(client: id, error))
            }
            return
        }
        let client = BridgedClient(id: id, local: stream, settings: settings, loop: loop) { self.happened($0) }
        clients[id] = client
        client.start()
        connecting[id] = Task(executorPreference: loop.taskExecutor) { await self.connect(id) }
    }

    private func happened(_ event: BridgeEvent) {
        switch event {
        case .closed(let id, _), .failed(let id, _):
            connecting[id]?.cancel()
            clients[id] = nil
        case .listening, .opened: break
        }
        onEvent(event)
    }

    /// Reaches the share for one client.
    private func connect(_ id: UInt64) async {
        defer { connecting[id] = nil }
        do throws(LoopError) {
            let stream = try await reach()
            guard let client = clients[id] else { return stream.close() }
            do throws(TLSError) {
                client.connected(stream, try context?.makeEngine(serverName: settings.host))
            } catch {
                stream.close()
                client.fail(MeshError(opening: .tls(error), to: settings))
            }
        } catch {
            clients[id]?.fail(MeshError(reaching: error, settings))
        }
    }

    /// A connection to the first of the share's addresses that answers. Each has its part of the time.
    private func reach() async throws(LoopError) -> LoopStream {
        let addresses = try await loop.resolve(host: settings.host, port: settings.port)
        let timer = LoopTimer(loop)
        var failure = LoopError(kind: .hostNotFound, operation: "resolve", detail: "no address")
        for address in addresses {
            let stream = LoopStream(tcp: loop)
            timer.schedule(after: settings.openingLimit / (addresses.count + 1)) { [weak stream] in stream?.close() }
            do throws(LoopError) {
                try await stream.connect(to: address)
                return stream
            } catch {
                failure = error
                if Task.isCancelled { break }
            }
        }
        throw failure
    }
}
