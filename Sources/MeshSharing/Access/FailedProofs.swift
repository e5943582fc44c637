// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Where proofs failed from, and who is not listened to for a while because of it. Pure.
///
/// A secret of 16 characters is not guessed over a network at any rate; this keeps somebody who tries from filling the log
/// and the host's time.
struct FailedProofs {
    /// So many failures of one address within ``window`` bar it for ``barredFor``.
    static let limit = 3
    static let window = Duration.seconds(60)
    static let barredFor = Duration.seconds(60)
    /// How many addresses are remembered; the one that failed least recently is forgotten first.
    static let addressLimit = 1_024

    /// The newest failures of each address, the newest last, ``limit`` at most.
    private var failures: [String: [Duration]] = [:]

    /// A proof failed. Whether its address is barred from now on.
    mutating func failed(_ address: String, now: Duration) -> Bool {
        if failures[address] == nil, failures.count >= Self.addressLimit { makeRoom(now: now) }
        failures[address, default: []].removeAll { now - $0 >= Self.window }
        failures[address, default: []].append(now)
        let surplus = failures[address, default: []].count - Self.limit
        if surplus > 0 { failures[address]?.removeFirst(surplus) }
        return isBarred(address, now: now)
    }

    /// Whether clients of this address are not listened to now.
    func isBarred(_ address: String, now: Duration) -> Bool {
        guard let times = failures[address], let last = times.last else { return false }
        return times.count == Self.limit && now - last < Self.barredFor
    }

    private mutating func makeRoom(now: Duration) {
        let memory = max(Self.window, Self.barredFor)
        failures = failures.filter { $0.value.last.map { now - $0 < memory } ?? false }
        guard failures.count >= Self.addressLimit else { return }
        let oldest = failures.min { ($0.value.last ?? .zero) < ($1.value.last ?? .zero) }
        if let oldest { failures[oldest.key] = nil }
    }
}
