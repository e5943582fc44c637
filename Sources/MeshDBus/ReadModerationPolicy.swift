// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// When the socket of a bus connection is read: at once, or, while messages keep coming, in pauses and then all at once. Pure.
///
/// A message that comes alone costs a wake-up, and with it everything that has gone from the caches since the last one. Drivers
/// of network cards moderate their interrupts for that reason, and this does the same: a steady stream is read once in
/// ``pause``.
///
/// Nobody waits for that: while the reply to a call is awaited, everything is read at once, so a write to a radio and all of
/// setting up a link are as fast as without. What is read in pauses is a stream that a radio sends unasked, or a list that it
/// sends as the answer to one command; there each message comes at most ``pause`` later.
struct ReadModerationPolicy: Sendable {
    /// How the next messages are read.
    enum Step: Sendable, Hashable {
        /// When the socket says that there are some.
        case whenReadable
        /// After this long, all that will have come.
        case after(Duration)
    }

    /// What people still take for at once, and a tenth of the wake-ups at 100 messages a second.
    static let pause = Duration.milliseconds(100)
    /// Reads of a stream are at most this far apart on average: two intervals of a Bluetooth connection at its fastest.
    /// Firmware that leaves 60 ms between notifications, as MeshCore's does, is never moderated.
    static let streamGap = Duration.milliseconds(15)
    /// So many reads in a row make a stream. Short answers, and what comes in twos and threes, are over before.
    static let streamReads = 6
    /// After this long without a message a new count begins: also within a stream some come late.
    static let longGap = Duration.milliseconds(30)
    /// A pause that brought fewer was not worth it. Somewhat below what ``streamGap`` gives, so that a stream at that limit is
    /// not switched to and fro.
    static let worthwhile = 5

    /// The reads in a row so far, and when the first was.
    private var reads = 0
    private var firstRead = Duration.zero
    private var lastRead = Duration.zero

    /// Something was read because the socket said so.
    mutating func wasRead(isReplyAwaited: Bool, now: Duration) -> Step {
        guard !isReplyAwaited else {
            reads = 0
            return .whenReadable
        }
        if reads == 0 || now - lastRead > Self.longGap {
            reads = 0
            firstRead = now
        }
        reads += 1
        lastRead = now
        guard reads >= Self.streamReads else { return .whenReadable }
        if now - firstRead <= Self.streamGap * (reads - 1) { return .after(Self.pause) }
        // Slower: the most recent reads decide.
        reads = 1
        firstRead = now
        return .whenReadable
    }

    /// A pause is over and this many messages were read.
    mutating func pauseEnded(messages: Int, isReplyAwaited: Bool) -> Step {
        if !isReplyAwaited, messages >= Self.worthwhile { return .after(Self.pause) }
        reads = 0
        return .whenReadable
    }

    /// A call was sent: its reply is to be read at once.
    mutating func callWasSent() {
        reads = 0
    }
}
