// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// Times of a ``MeshRequestStateMachine``.
public struct MeshRequestConfiguration: Sendable {
    /// How many times the receipt's estimate an answer is waited for. (companion-protocol §2.4; meshcore_py 2.3.17 waits
    /// 1.25 times.)
    public var timeoutShare = 1.2
    /// What is added to that: the way between radio and host.
    public var margin: Duration = .milliseconds(500)
    /// How long an answer may take when the receipt does not tell.
    public var fallback: Duration = .seconds(15)
    /// The longest that an answer is waited for, whatever the receipt says.
    public var longest: Duration = .seconds(120)
    /// For how long after its end a request is remembered, so that a late answer still finds its requester.
    public var lateMemory: Duration = .seconds(60)

    public init() {}

    /// How long to wait for what the radio's reply to a request announces.
    func wait(after reply: CompanionReply?) -> Duration {
        guard case .sent(let receipt) = reply, receipt.timeoutMilliseconds > 0 else { return fallback }
        return min(.milliseconds(receipt.timeoutMilliseconds) * timeoutShare + margin, longest)
    }
}

/// The radio's one pending mesh request: which is out, whose the answer is, when the next may go.
///
///               requestSent                   receiptReceived (SENT)
///     free ─────────────────▶ waitingForReceipt ─────────────▶ waitingForAnswer
///       ▲                          │ ERR, requestFailed              │ push that matches, deadline
///       └──────────────────────────┴─────────────────────────────────┘      (from all states: linkLost)
///
/// - `free` waits for a request.
/// - `waitingForReceipt` waits for the lane's reply to the command.
/// - `waitingForAnswer` waits for the push with the answer, or its deadline.
///
/// The firmware forgets its pending request at the next one, of whatever kind, and says nothing of it (`MyMesh.cpp`,
/// `clearPendingReqs`; companion-protocol §1.9). So a request may only go when this is ``isFree``. Answers name their node
/// by the start of its key (login, status, telemetry, path) or by the tag of the receipt (binary, anonymous).
///
/// A radio answers SENT before it can hear anything, so what comes before the receipt is rather the late answer to an
/// earlier request. If there was none that it could belong to, it is taken all the same; should the receipt then name
/// another tag, the request goes on waiting.
///
/// Ended requests are remembered for a while, and no more than ``lateLimit`` of them: their answers may still come.
public struct MeshRequestStateMachine: Sendable {
    /// What a push is to the requests.
    public enum PushAction: Sendable, Hashable {
        /// The answer to the pending request: give it to the requester. The next request may go.
        case answer(to: LaneRequester)
        /// An answer to a request that had expired, or was answered before.
        case late(to: LaneRequester)
        /// The answer to a request whose requester has gone.
        case orphan
        /// No answer to any request known here.
        case notMine
    }

    /// What a deadline means.
    public enum DeadlineAction: Sendable, Hashable {
        /// It was early or repeated.
        case none
        /// No answer came; the requester, if it is still there, is owed an error. The next request may go.
        case expired(LaneRequester?)
    }

    /// How many ended requests are remembered at most.
    public static let lateLimit = 16

    /// By what the answer is known.
    private enum Answer: Sendable, Hashable {
        case login(KeyPrefix)
        case status(KeyPrefix)
        case telemetry(KeyPrefix)
        case path(KeyPrefix)
        /// No tag before the receipt has come.
        case binary(tag: Data?)

        var isBinary: Bool {
            if case .binary = self { true } else { false }
        }
    }

    private struct Request {
        var requester: LaneRequester?
        var answer: Answer
    }

    private enum State {
        case free
        /// With the answer that came before the receipt, if one did. The deadline is for a driver that forgets.
        case waitingForReceipt(Request, early: Answer?, deadline: Duration)
        case waitingForAnswer(Request, deadline: Duration)
    }

    private struct Ended {
        var request: Request
        var until: Duration
    }

    private let configuration: MeshRequestConfiguration
    private var state = State.free
    /// The newest last.
    private var ended: [Ended] = []

    public init(configuration: MeshRequestConfiguration = .init()) {
        self.configuration = configuration
    }

    /// Whether this command occupies the radio's one pending request.
    ///
    /// A trace does not, nor does the telemetry of the radio itself.
    public static func isMeshRequest(_ command: Data) -> Bool { answer(to: command) != nil }

    /// Whether the next mesh request may go to the radio.
    public var isFree: Bool {
        if case .free = state { true } else { false }
    }

    /// When ``deadlineReached(now:)`` wants to be called.
    public var nextDeadline: Duration? {
        switch state {
        case .free: nil
        case .waitingForReceipt(_, _, let deadline), .waitingForAnswer(_, let deadline): deadline
        }
    }

    // MARK: Inputs

    /// The command went to the radio. Only when ``isFree``, and only if ``isMeshRequest(_:)``.
    public mutating func requestSent(_ command: Data, from requester: LaneRequester, now: Duration) {
        guard case .free = state, let answer = Self.answer(to: command) else {
            return assertionFailure("a mesh request was sent out of turn, or is none")
        }
        state = .waitingForReceipt(
            Request(requester: requester, answer: answer), early: nil, deadline: now + configuration.longest)
    }

    /// The radio's reply to it: SENT, ERR, or anything else.
    public mutating func receiptReceived(_ reply: Data, now: Duration) {
        guard case .waitingForReceipt(var request, let early, _) = state else { return }
        guard reply.first != ReplyCode.error.rawValue else { return state = .free }
        let decoded = try? CompanionReply(decoding: reply)
        if case .sent = decoded, request.answer.isBinary {
            request.answer = .binary(tag: Data(reply.dropFirst(2).prefix(4)))
        }
        if let early, early == request.answer { return end(request, now) }
        state = .waitingForAnswer(request, deadline: now + configuration.wait(after: decoded))
    }

    /// The command got no reply in time or could not be sent.
    public mutating func requestFailed(now: Duration) {
        guard case .waitingForReceipt(let request, _, _) = state else { return }
        end(request, now)
    }

    /// A push came from the radio.
    public mutating func pushReceived(_ push: Data, now: Duration) -> PushAction {
        ended.removeAll { now >= $0.until }
        guard let answer = Self.answer(in: push) else { return .notMine }
        switch state {
        case .free:
            return late(answer) ?? .notMine
        case .waitingForReceipt(let request, let early, let deadline):
            if let late = late(answer) { return late }
            guard early == nil, request.answer == answer || request.answer == .binary(tag: nil) && answer.isBinary
            else {
                return .notMine
            }
            // The lane is busy with the command until its receipt in any case.
            state = .waitingForReceipt(request, early: answer, deadline: deadline)
            return request.requester.map { .answer(to: $0) } ?? .orphan
        case .waitingForAnswer(let request, _):
            guard request.answer == answer else { return late(answer) ?? .notMine }
            end(request, now)
            return request.requester.map { .answer(to: $0) } ?? .orphan
        }
    }

    /// The requester is gone. The radio is occupied until the answer or the deadline all the same.
    public mutating func requesterLeft(_ requester: LaneRequester) {
        for index in ended.indices where ended[index].request.requester == requester {
            ended[index].request.requester = nil
        }
        switch state {
        case .waitingForReceipt(var request, let early, let deadline) where request.requester == requester:
            request.requester = nil
            state = .waitingForReceipt(request, early: early, deadline: deadline)
        case .waitingForAnswer(var request, let deadline) where request.requester == requester:
            request.requester = nil
            state = .waitingForAnswer(request, deadline: deadline)
        case .free, .waitingForReceipt, .waitingForAnswer:
            break
        }
    }

    /// The link is gone: whoever waits is owed an error, and nothing is remembered.
    public mutating func linkLost() {
        state = .free
        ended = []
    }

    /// Time has passed.
    public mutating func deadlineReached(now: Duration) -> DeadlineAction {
        guard let deadline = nextDeadline, now >= deadline else { return .none }
        switch state {
        case .free:
            return .none
        case .waitingForReceipt(let request, _, _), .waitingForAnswer(let request, _):
            end(request, now)
            return .expired(request.requester)
        }
    }

    // MARK: Ends

    private mutating func end(_ request: Request, _ now: Duration) {
        state = .free
        if request.answer == .binary(tag: nil) { return }
        if ended.count >= Self.lateLimit { ended.removeFirst() }
        ended.append(Ended(request: request, until: now + configuration.lateMemory))
    }

    /// The newest request of the past that such an answer can belong to.
    private func late(_ answer: Answer) -> PushAction? {
        guard let past = ended.last(where: { $0.request.answer == answer }) else { return nil }
        return past.request.requester.map { .late(to: $0) } ?? .orphan
    }
}

extension MeshRequestStateMachine {
    /// What answers a command; nil for one that leaves the pending request alone. The firmware refuses short ones before
    /// it forgets anything.
    private static func answer(to command: Data) -> Answer? {
        guard let code = command.first.flatMap(CommandCode.init), CommandSpec.isLengthAllowed(code, command.count)
        else { return nil }
        func prefix(at offset: Int) -> KeyPrefix? { KeyPrefix(command.dropFirst(offset).prefix(KeyPrefix.length)) }
        switch code {
        case .sendLogin: return prefix(at: 1).map { .login($0) }
        case .sendStatusRequest: return prefix(at: 1).map { .status($0) }
        // The form of four bytes asks the radio itself.
        case .sendTelemetryRequest: return prefix(at: 4).map { .telemetry($0) }
        case .sendPathDiscovery: return prefix(at: 2).map { .path($0) }
        case .sendBinaryRequest, .sendAnonymousRequest: return .binary(tag: nil)
        default: return nil
        }
    }

    /// What a push answers. In all of them the key or the tag comes after the code and one more byte.
    private static func answer(in push: Data) -> Answer? {
        guard let code = push.first.flatMap(PushCode.init) else { return nil }
        let body = push.dropFirst(2)
        let prefix = KeyPrefix(body.prefix(KeyPrefix.length))
        switch code {
        case .loginSuccess, .loginFailed: return prefix.map { .login($0) }
        case .statusResponse: return prefix.map { .status($0) }
        case .telemetryResponse: return prefix.map { .telemetry($0) }
        case .pathDiscovery: return prefix.map { .path($0) }
        case .binaryResponse: return body.count >= 4 ? .binary(tag: Data(body.prefix(4))) : nil
        default: return nil
        }
    }
}
