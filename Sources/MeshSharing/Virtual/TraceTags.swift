// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

/// Whose trace is whose. A client chooses the tag of its trace, and two may choose the same; so the host puts a tag of
/// its own in its place and the client's back into what the radio answers (companion-protocol §1.5, command 36; §1.6,
/// 06; §1.7, 89).
///
///     client A ─ 24 AAAA… ─▶          ─ 24 0001… ─▶ radio
///     client A ◀─ 06.AAAA… ─ TraceTags ◀─ 06.0001… ─ radio
///     client A ◀─ 89…AAAA… ─          ◀─ 89…0001… ─ radio
struct TraceTags: Sendable {
    /// Whose a TRACE_DATA push is.
    enum Owner: Sendable, Equatable {
        /// A client's, with the tag that it chose.
        case client(UInt64, Data)
        /// A client's that has gone.
        case gone
        /// Nobody's here: a trace of another node may end at this radio too.
        case unknown
    }

    private struct Trace {
        let tag: UInt32
        let chosen: UInt32
        let client: UInt64
        let until: Duration
        var isGone = false
    }

    /// How many traces may be under way. For one more the client's own oldest is given up, or the oldest of all.
    static let capacity = 128
    /// For how long an answer may come. The radio's own estimate for the longest path is some minutes: 64 hops of
    /// 6 × airtime + 250 ms each (`calcDirectTimeoutMillisFor`).
    static let lifetime: Duration = .seconds(600)

    private static let commandOffset = 1
    private static let receiptOffset = 2
    private static let pushOffset = 4

    /// In the order in which they began.
    private var traces: [Trace] = []

    /// How many answers are awaited.
    var count: Int { traces.count }

    /// The command for the radio: a client's SEND_TRACE_PATH with the tag `tag`, a random number, or the next that is
    /// free. A frame too short to have a tag is returned as it is.
    mutating func translate(_ command: Data, from client: UInt64, tag: UInt32, now: Duration) -> Data {
        guard let chosen = command.field32(at: Self.commandOffset) else { return command }
        traces.removeAll { $0.until <= now }
        if traces.count == Self.capacity { traces.remove(at: traces.firstIndex { $0.client == client } ?? 0) }
        var tag = tag
        while traces.contains(where: { $0.tag == tag }) { tag &+= 1 }
        traces.append(Trace(tag: tag, chosen: chosen, client: client, until: now + Self.lifetime))
        return Self.frame(command, with: tag, at: Self.commandOffset)
    }

    /// The radio's reply to such a command, as its client shall see it: SENT with its own tag.
    func receipt(_ reply: Data) -> Data {
        guard reply.first == ReplyCode.sent.rawValue, let trace = trace(in: reply, at: Self.receiptOffset)
        else { return reply }
        return Self.frame(reply, with: traces[trace].chosen, at: Self.receiptOffset)
    }

    /// TRACE_DATA came. It ends the trace.
    mutating func pushReceived(_ push: Data, now: Duration) -> Owner {
        traces.removeAll { $0.until <= now }
        guard push.first == PushCode.trace.rawValue, let index = trace(in: push, at: Self.pushOffset)
        else { return .unknown }
        let trace = traces.remove(at: index)
        return trace.isGone ? .gone : .client(trace.client, Self.frame(push, with: trace.chosen, at: Self.pushOffset))
    }

    /// Answers to its traces are for nobody.
    mutating func clientLeft(_ client: UInt64) {
        for index in traces.indices where traces[index].client == client { traces[index].isGone = true }
    }

    private func trace(in frame: Data, at offset: Int) -> Int? {
        frame.field32(at: offset).flatMap { tag in traces.firstIndex { $0.tag == tag } }
    }

    private static func frame(_ frame: Data, with tag: UInt32, at offset: Int) -> Data {
        var frame = Data(frame)
        frame.setField32(tag, at: offset)
        return frame
    }
}
