// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshStream
internal import MeshTransportAPI

/// One attempt to connect: look-up, then the addresses in turn, the next one after a failure or 250 ms; the first that
/// answers wins (RFC 8305 §5, with the resolver's order and without its separate A and AAAA look-ups).
extension TCPTransport {
    /// RFC 8305 §5, "Connection Attempt Delay".
    private static let attemptDelay = Duration.milliseconds(250)

    private enum Happening: Sendable {
        case resolved(Result<[SocketAddress], LoopError>)
        case connected(candidate: Int)
        case failed(candidate: Int, LoopError)
        /// The delay after the start of that many candidates is over.
        case delayOver(started: Int)
        case deadline
        /// A timer that was cancelled.
        case nothing
    }

    /// A connected stream. Whatever else was begun has ended when this returns or throws.
    func openConnection() async throws(MeshError) -> LoopStream {
        let endpoint = settings.endpoint
        let result: Result<Int, MeshError> = await withTaskGroup(of: Happening.self) { group in
            defer { group.cancelAll() }
            group.addTask { await self.timer(self.settings.connectTimeout, .deadline) }
            group.addTask { await self.lookUp(endpoint) }
            var addresses: [SocketAddress] = []
            var started = 0
            var failures: [(address: SocketAddress, error: LoopError)] = []
            while let happening = await group.next() {
                if Task.isCancelled { break }
                var startNext = false
                switch happening {
                case .resolved(.failure(let error)): return .failure(MeshError(resolving: endpoint, error))
                case .resolved(.success(let found)):
                    addresses = found
                    startNext = true
                case .connected(let candidate): return .success(candidate)
                case .failed(let candidate, let error):
                    failures.append((addresses[candidate], error))
                    if failures.count == addresses.count {
                        return .failure(MeshError(connectingTo: endpoint, failures))
                    }
                    startNext = true
                case .delayOver(let count): startNext = count == started
                case .deadline where addresses.isEmpty:
                    return .failure(MeshError(lookUpTimeout: settings.connectTimeout, endpoint))
                case .deadline:
                    return .failure(MeshError(connectTimeout: settings.connectTimeout, endpoint, failures))
                case .nothing: break
                }
                if startNext, started < addresses.count {
                    let (candidate, address) = (started, addresses[started])
                    started += 1
                    group.addTask { await self.open(candidate, address) }
                    if started < addresses.count {
                        let count = started
                        group.addTask { await self.timer(Self.attemptDelay, .delayOver(started: count)) }
                    }
                }
            }
            return .failure(link.cancelled)
        }
        // Losers that connected at the same moment are closed here.
        let winner = (try? result.get()).flatMap { candidates.removeValue(forKey: $0) }
        for loser in candidates.values { loser.close() }
        candidates = [:]
        _ = try result.get()
        guard let winner else {
            throw MeshError(.internalError, "the connection to \(endpoint) was lost while it was taken over")
        }
        return winner
    }

    private func open(_ candidate: Int, _ address: SocketAddress) async -> Happening {
        let stream = LoopStream(tcp: loop)
        candidates[candidate] = stream
        do {
            try await stream.connect(to: address)
            return .connected(candidate: candidate)
        } catch {
            candidates[candidate]?.close()
            candidates[candidate] = nil
            return .failed(candidate: candidate, error)
        }
    }

    private func lookUp(_ endpoint: TCPEndpoint) async -> Happening {
        do {
            return .resolved(.success(try await loop.resolve(host: endpoint.host, port: endpoint.port)))
        } catch {
            return .resolved(.failure(error))
        }
    }

    private func timer(_ delay: Duration, _ happening: Happening) async -> Happening {
        do {
            try await loop.sleep(for: delay)
            return happening
        } catch {
            return .nothing
        }
    }
}
