// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Whether processes of one module may be started, after those before them crashed.
///
/// ```
/// ready ──crashed──▶ waiting ──delay──▶ ready        the delay doubles from crash to crash: 1 s → 5 min
///   │                   │
///   └─── the fifth crash within 10 minutes ───▶ quarantined ──reset──▶ ready
/// ```
///
/// The delay begins anew once no crash has come for as long as crashes are counted. Nothing is started here: who needs a
/// process asks, so that a module that nobody uses stays away.
struct ModuleSupervisorStateMachine: ~Copyable {
    struct Configuration: Sendable {
        /// The least wait after a crash.
        var firstDelay: Duration = .seconds(1)
        var maximumDelay: Duration = .seconds(300)
        /// So many crashes…
        var crashLimit = 5
        /// …within this time.
        var crashWindow: Duration = .seconds(600)
    }

    private enum State {
        case ready
        /// Until then nothing is started.
        case waiting(until: Duration)
        /// For a person to decide.
        case quarantined
    }

    /// May a process be started?
    enum StartAction: Sendable {
        case start
        case wait(Duration)
        case refuse
    }

    /// What follows from a crash.
    enum CrashAction: Sendable {
        case wait(Duration)
        case quarantine
    }

    private let configuration: Configuration
    private var state = State.ready
    /// When the crashes came that count.
    private var crashes: [Duration] = []
    /// How often the delay has doubled.
    private var doublings = 0
    private var lastCrash: Duration?

    init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    var isQuarantined: Bool {
        if case .quarantined = state { true } else { false }
    }

    /// Somebody needs a process.
    mutating func startRequested(now: Duration) -> StartAction {
        switch state {
        case .ready: return .start
        case .quarantined: return .refuse
        case .waiting(let end) where end > now: return .wait(end - now)
        case .waiting:
            state = .ready
            return .start
        }
    }

    /// A process ended that nobody had ended.
    mutating func crashed(now: Duration, using generator: inout some RandomNumberGenerator) -> CrashAction {
        if let lastCrash, now - lastCrash >= configuration.crashWindow { doublings = 0 }
        lastCrash = now
        crashes.removeAll { now - $0 >= configuration.crashWindow }
        crashes.append(now)
        switch state {
        case .quarantined: return .quarantine
        case .ready, .waiting: break
        }
        if crashes.count >= configuration.crashLimit {
            state = .quarantined
            crashes = []
            return .quarantine
        }
        var delay = configuration.firstDelay
        for _ in 0..<doublings where delay < configuration.maximumDelay { delay *= 2 }
        delay = min(delay, configuration.maximumDelay)
        // Once at the maximum there is nothing left to double.
        if delay < configuration.maximumDelay { doublings += 1 }
        // A quarter more at random: modules that died of one cause do not come back at one time.
        delay = delay + delay * Double.random(in: 0...0.25, using: &generator)
        state = .waiting(until: now + delay)
        return .wait(delay)
    }

    /// A person says that it may be tried again.
    mutating func reset() {
        state = .ready
        crashes = []
        doublings = 0
        lastCrash = nil
    }
}
