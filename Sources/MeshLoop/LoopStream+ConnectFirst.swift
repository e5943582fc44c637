// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV

extension LoopStream {
    /// Why there is no connection to any of several addresses.
    public struct ConnectFailures: Error, Sendable {
        /// Those that failed, in the order in which they did.
        public var failures: [(address: SocketAddress, error: LoopError)]
        /// Whether the attempt was cancelled, before all had failed.
        public var isCancelled: Bool

        public init(failures: [(address: SocketAddress, error: LoopError)], isCancelled: Bool) {
            self.failures = failures
            self.isCancelled = isCancelled
        }
    }

    /// Connects over TCP to the first of several addresses that answers. They are tried in their order, the next one when the one
    /// before has failed or has not answered for a while; those that are still under way go on meanwhile (RFC 8305 §5).
    ///
    /// Cancelling the task ends the attempt. Nothing is left of the addresses that lose.
    public static func connect(
        toFirstOf addresses: [SocketAddress], on loop: EventLoop, isolation: isolated (any Actor)? = #isolation
    ) async throws(ConnectFailures) -> LoopStream {
        let race = ConnectRace(loop, addresses)
        race.begin()
        await withTaskCancellationHandler {
            await race.end.get(isolation: isolation)
        } onCancel: {
            loop.perform { race.cancel() }
        }
        if let winner = race.winner { return winner }
        throw ConnectFailures(failures: race.failures, isCancelled: race.isCancelled)
    }
}

/// Attempts to connect, of which one wins.
///
/// Sendable because of one invariant: all of it is touched on the loop's thread only.
private final class ConnectRace: @unchecked Sendable {
    /// RFC 8305 §5, "Connection Attempt Delay".
    private static let delay = Duration.milliseconds(250)

    /// Told once.
    let end = LoopResult<Void>()
    private(set) var winner: LoopStream?
    private(set) var failures: [(address: SocketAddress, error: LoopError)] = []
    private(set) var isCancelled = false
    private let loop: EventLoop
    private let addresses: [SocketAddress]
    private let timer: LoopTimer
    private var started = 0
    /// Those that are under way.
    private var streams: [Int: LoopStream] = [:]
    private var isOver = false

    init(_ loop: EventLoop, _ addresses: [SocketAddress]) {
        self.loop = loop
        self.addresses = addresses
        timer = LoopTimer(loop)
    }

    func begin() {
        if addresses.isEmpty { finish() } else { startNext() }
    }

    func cancel() {
        if isOver { return }
        isCancelled = true
        finish()
    }

    private func startNext() {
        guard !isOver, started < addresses.count else { return }
        let (candidate, address, stream) = (started, addresses[started], LoopStream(tcp: loop))
        started += 1
        streams[candidate] = stream
        // Before the attempt, which may fail at once and begin the next one itself.
        timer.schedule(after: Self.delay) { [weak self] in self?.startNext() }
        ConnectRequest { self.ended(candidate, address, $0) }.start(stream, address)
    }

    private func ended(_ candidate: Int, _ address: SocketAddress, _ status: Int32) {
        // Those that lose are told of their end, too.
        guard let stream = streams.removeValue(forKey: candidate) else { return }
        guard status < 0 else {
            winner = stream
            return finish()
        }
        stream.close()
        failures.append((address, LoopError(status: status, operation: "connect to \(address)")))
        if failures.count == addresses.count { finish() } else { startNext() }
    }

    private func finish() {
        isOver = true
        timer.cancel()
        for stream in streams.values { stream.close() }
        streams = [:]
        end.set(())
    }
}
