// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Where proofs failed from, and who is not listened to for a while because of it. Pure.
///
/// A secret of 16 characters is not guessed over a network at any rate; this keeps somebody who tries from filling the log
/// and the host's time. So it must never do more harm than whoever tries: a program with an old secret, which goes on asking,
/// must not keep out those that happen to share its address.
///
/// - On this machine nobody is barred. All its programs have one address, and behind a reverse proxy all the world has. Who
///   fails is told so late.
/// - From elsewhere one token is barred from one network, and the others are not. Names that the share does not have count
///   as one.
/// - A network with so many failures that it must be trying names is barred as a whole, before TLS costs any time.
struct FailedProofs {
    /// Where a connection comes from.
    struct Origin: Hashable {
        /// What one peer cannot choose by itself: an address, a /64, a user of this machine.
        var network: String
        /// Whether it comes from this machine.
        var isLocal: Bool
    }

    /// So many failures with one token within ``window`` bar it for ``barredFor``, or make the answers late.
    static let limit = 3
    /// So many failures of one network within ``window`` bar it as a whole.
    static let networkLimit = 30
    static let window = Duration.seconds(60)
    static let barredFor = Duration.seconds(60)
    /// How late an answer is: far from the 10 s after which a connection ends, and more than a program that asks again at
    /// once can do any harm with.
    static let lateness = Duration.seconds(2)
    /// How many are remembered; the one that failed least recently is forgotten first.
    static let memoryLimit = 2_048

    private enum Subject: Hashable {
        case network(String)
        /// Nil: any name that the share does not have.
        case token(String?, network: String)
    }

    /// The newest failures, the newest last; never more than count.
    private var failures: [Subject: [Duration]] = [:]

    /// A proof of this token failed; nil if the share has none of that name. How late to tell so.
    mutating func failed(_ origin: Origin, token: String?, now: Duration) -> Duration {
        if origin.isLocal {
            note(.network(origin.network), limit: Self.limit, now: now)
            return hasReached(Self.limit, .network(origin.network), now: now) ? Self.lateness : .zero
        }
        note(.network(origin.network), limit: Self.networkLimit, now: now)
        note(.token(token, network: origin.network), limit: Self.limit, now: now)
        return .zero
    }

    /// Whether nobody from there is listened to now.
    func isBarred(_ origin: Origin, now: Duration) -> Bool {
        !origin.isLocal && hasReached(Self.networkLimit, .network(origin.network), now: now)
    }

    /// Whether nobody from there is asked for this token now.
    func isBarred(_ origin: Origin, token: String?, now: Duration) -> Bool {
        !origin.isLocal && hasReached(Self.limit, .token(token, network: origin.network), now: now)
    }

    private func hasReached(_ limit: Int, _ subject: Subject, now: Duration) -> Bool {
        guard let times = failures[subject], let last = times.last else { return false }
        return times.count >= limit && now - last < Self.barredFor
    }

    private mutating func note(_ subject: Subject, limit: Int, now: Duration) {
        if failures[subject] == nil, failures.count >= Self.memoryLimit { makeRoom(now: now) }
        failures[subject, default: []].removeAll { now - $0 >= Self.window }
        failures[subject, default: []].append(now)
        let surplus = failures[subject, default: []].count - limit
        if surplus > 0 { failures[subject]?.removeFirst(surplus) }
    }

    private mutating func makeRoom(now: Duration) {
        let memory = max(Self.window, Self.barredFor)
        failures = failures.filter { $0.value.last.map { now - $0 < memory } ?? false }
        guard failures.count >= Self.memoryLimit else { return }
        let oldest = failures.min { ($0.value.last ?? .zero) < ($1.value.last ?? .zero) }
        if let oldest { failures[oldest.key] = nil }
    }
}
