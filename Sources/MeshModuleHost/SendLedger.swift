// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials

/// Which sends of one link wait for what. Pure: the waiter is a ``LoopResult`` in the host, a number in tests.
/// A frame is entered in the same turn in which the module gets it, so that every `tx_done` and `writable` finds it.
///
/// ```
/// offered ──MH_OK──▶ accepted ──tx_done──▶ over
///    │  ▲                │ cancelled: stays accepted, without a waiter
///  AGAIN writable
///    ▼  │
///  waiting (FIFO) ──cancelled──▶ over
/// ```
struct SendLedger<Waiter> {
    /// A frame that found no room in the module.
    struct Waiting {
        var cookie: UInt64
        var frame: Data
        var withoutResponse: Bool
        var waiter: Waiter
    }

    /// How many may wait.
    static var limit: Int { 1_024 }

    private var accepted: [UInt64: Waiter?] = [:]
    private var waiting: [Waiting] = []
    /// The module said `MH_AGAIN` and has not said `writable` since.
    private(set) var isBlocked = false

    /// Whether a new frame must wait its turn.
    var mustWait: Bool { isBlocked || !waiting.isEmpty }
    var isFull: Bool { waiting.count >= Self.limit }
    var acceptedCount: Int { accepted.count }
    var waitingCount: Int { waiting.count }

    /// The module took the frame; `waiter` is told when it is done.
    mutating func frameAccepted(_ cookie: UInt64, _ waiter: Waiter) {
        accepted[cookie] = .some(waiter)
    }

    /// The module took the frame, and nobody waits for its end.
    mutating func frameAccepted(_ cookie: UInt64) {
        accepted[cookie] = .some(nil)
    }

    /// The module had no room: nothing is offered until ``writable()``.
    mutating func frameRefused() {
        isBlocked = true
    }

    mutating func frameWaits(_ entry: Waiting) {
        waiting.append(entry)
    }

    mutating func writable() {
        isBlocked = false
    }

    /// The frame to offer next, if one may be.
    var next: Waiting? { isBlocked ? nil : waiting.first }

    /// The frame that ``next`` gave has been taken or has failed.
    mutating func removeNext() {
        waiting.removeFirst()
    }

    /// What a `tx_done` means.
    enum Completion {
        /// Tell this one.
        case resume(Waiter)
        /// Its sender has gone.
        case nobodyWaits
        /// No such frame is under way: the module has broken the rule of exactly one.
        case unexpected
    }

    mutating func done(_ cookie: UInt64) -> Completion {
        switch accepted.removeValue(forKey: cookie) {
        case .some(.some(let waiter)): .resume(waiter)
        case .some(.none): .nobodyWaits
        case .none: .unexpected
        }
    }

    /// The sender gave up. Returns its waiter, if it still waited; a frame that the module has stays accounted for.
    mutating func cancel(_ cookie: UInt64) -> Waiter? {
        if let index = waiting.firstIndex(where: { $0.cookie == cookie }) {
            return waiting.remove(at: index).waiter
        }
        guard case .some(.some(let waiter)) = accepted[cookie] else { return nil }
        accepted[cookie] = .some(nil)
        return waiter
    }

    /// The link has ended: everybody who waits, in the order of the sends.
    mutating func removeAll() -> [Waiter] {
        let waiters = accepted.sorted { $0.key < $1.key }.compactMap(\.value) + waiting.map(\.waiter)
        accepted = [:]
        waiting = []
        isBlocked = false
        return waiters
    }
}
