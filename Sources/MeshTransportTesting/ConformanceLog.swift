// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI
internal import Synchronization

/// What a transport reported, with the end of its stream of frames at its place between the events.
final class ConformanceLog: Sendable {
    enum Record: Sendable {
        case event(LinkEvent)
        case streamEnded
    }

    private struct State {
        var records: [Record] = []
        var phaseWaiters: [(phase: LinkPhase, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    /// What the transport under test reports to.
    var environment: TransportEnvironment {
        TransportEnvironment(log: .none, linkEvents: { self.append(.event($0)) })
    }

    func append(_ record: Record) {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.records.append(record)
            guard case .event(.phase(let phase)) = record else { return [] }
            defer { state.phaseWaiters.removeAll { $0.phase == phase } }
            return state.phaseWaiters.filter { $0.phase == phase }.map(\.continuation)
        }
        for waiter in waiters { waiter.resume() }
    }

    var records: [Record] { state.withLock { $0.records } }

    /// Waits until `phase` has been reported.
    func reached(_ phase: LinkPhase) async {
        await withCheckedContinuation { continuation in
            let isReached = state.withLock { state in
                let isReached = state.records.contains {
                    if case .event(.phase(phase)) = $0 { true } else { false }
                }
                if !isReached { state.phaseWaiters.append((phase, continuation)) }
                return isReached
            }
            if isReached { continuation.resume() }
        }
    }

    /// The newest `up`.
    var lastUp: LinkInfo? {
        for case .event(.up(let info)) in records.reversed() { return info }
        return nil
    }

    /// The reasons of all `down` events.
    var downs: [MeshError?] {
        records.compactMap { if case .event(.down(let reason)) = $0 { .some(reason) } else { nil } }
    }

    /// Frames reported as dropped, in all.
    var dropped: Int {
        records.reduce(0) { if case .event(.framesDropped(let count)) = $1 { $0 + count } else { $0 } }
    }

    /// Whether a `down` stands before the first end of a stream.
    var isDownBeforeStreamEnd: Bool {
        for record in records {
            switch record {
            case .event(.down): return true
            case .streamEnded: return false
            case .event: continue
            }
        }
        return false
    }
}
