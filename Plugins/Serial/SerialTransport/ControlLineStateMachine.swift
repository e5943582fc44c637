// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop

/// Which way DTR and RTS are to be, found out by whether the radio answers. Pure: the driver is
/// ``SerialTransport``. It outlives the links. That a port can be opened says nothing about a radio behind it.
///
///     ┌────────┐ linkOpened ┌────────┐ frameSent ┌──────────────────┐ frameReceived ┌──────────┐
///     │ closed │ ─────────▶ │ silent │ ────────▶ │ waitingForAnswer │ ────────────▶ │ answered │
///     └────────┘            └────────┘           └──────┬───────────┘               └──────────┘
///         ▲ linkClosed, from every state                │ ▲ deadline: the next candidate, once on a link
///         └─────────────────────────────────────────────┴─┘
///
/// Boards want opposite things (companion-protocol §1.1): those with a USB port of their own send only while DTR is on, others
/// are held in reset or in their boot loader by it. What is known of a board comes first; when it does not answer, the other
/// way is tried, and kept from link to link once it was the one that worked. Firmware never speaks first, so silence means
/// nothing before something was sent.
struct ControlLineStateMachine: Sendable {
    struct Configuration: Sendable {
        /// How long after the first frame there must be an answer.
        var answerTimeout: Duration
        /// How long a board gets after the opening when it did not answer on the last link: it may restart at each opening.
        /// A Wio-E5 takes 1.2 s to 1.9 s (reconnection §4.4, 31).
        var startTime: Duration = .seconds(2)
    }

    enum Action: Equatable {
        case nothing
        case setControl(SerialControl)
    }

    private enum State {
        /// Waits for a link.
        case closed
        /// Waits for the first frame that is sent.
        case silent
        /// Waits for any frame from the radio.
        case waitingForAnswer(since: Duration, hasSwitched: Bool)
        /// Waits for nothing but the end.
        case answered
    }

    private let configuration: Configuration
    private var state = State.closed
    private var candidates: [SerialControl] = []
    private var current = 0
    /// The radio has answered with the lines as they are now.
    private var isProven = false
    /// Links in a row on which nothing answered.
    private(set) var unansweredLinks = 0

    init(_ configuration: Configuration) {
        self.configuration = configuration
    }

    /// How the lines are to be at the opening. Nil: as they are.
    var control: SerialControl? { candidates.isEmpty ? nil : candidates[current] }

    /// How long to wait after the opening.
    var startTime: Duration { unansweredLinks == 0 ? .zero : configuration.startTime }

    /// When ``deadlineReached(now:)`` is due. A radio that once answered this way and is silent may have other troubles: it
    /// gets a link to answer before its lines are moved, which restarts many boards.
    var nextDeadline: Duration? {
        switch state {
        case .waitingForAnswer(let since, hasSwitched: false)
        where candidates.count > 1 && (!isProven || unansweredLinks > 0):
            since + configuration.answerTimeout
        case .closed, .silent, .waitingForAnswer, .answered: nil
        }
    }

    // MARK: Inputs

    /// What a board may want, most likely first. Another board than before begins anew.
    mutating func boardFound(_ candidates: [SerialControl]) {
        guard candidates != self.candidates else { return }
        self.candidates = candidates
        current = 0
        isProven = false
        unansweredLinks = 0
    }

    mutating func linkOpened() {
        state = .silent
    }

    mutating func frameSent(now: Duration) {
        if case .silent = state { state = .waitingForAnswer(since: now, hasSwitched: false) }
    }

    mutating func frameReceived() {
        switch state {
        case .closed, .answered: break
        case .silent, .waitingForAnswer:
            state = .answered
            isProven = true
            unansweredLinks = 0
        }
    }

    mutating func linkClosed() {
        if case .waitingForAnswer = state { unansweredLinks += 1 }
        state = .closed
    }

    /// Early calls change nothing.
    mutating func deadlineReached(now: Duration) -> Action {
        guard let nextDeadline, nextDeadline <= now else { return .nothing }
        current = (current + 1) % candidates.count
        isProven = false
        state = .waitingForAnswer(since: now, hasSwitched: true)
        return .setControl(candidates[current])
    }
}
