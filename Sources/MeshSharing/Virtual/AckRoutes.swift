// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials

/// Who waits for which acknowledgement. The radio tells of one with SEND_CONFIRMED (82), whose code was in the receipt
/// of the text (06); the code does not tell whose text it was.
///
/// The code is a hash of time, attempt, text and sender, and **not** of the recipient (`BaseChatMesh.cpp`,
/// `composeMsgPacket`): the same words in the same second to two contacts are acknowledged by the same code, and so are
/// those of two clients. The radio tells of each once, and the first is taken for the first that was sent, also if its
/// client is gone: to tell another that its text has arrived might be wrong.
struct AckRoutes: Sendable {
    /// Whose an acknowledgement is.
    enum Route: Sendable, Equatable {
        case client(UInt64)
        /// A client's that has gone.
        case gone
        /// Nobody's here: sent before this process began, or by the radio's other interface; or it took too long.
        case unknown
    }

    private struct Waiter {
        let ack: UInt32
        let client: UInt64
        let until: Duration
        var isGone = false
    }

    /// How many may be awaited. For one more the client's own oldest is given up, or the oldest of all. The radio itself
    /// knows eight
    /// (`EXPECTED_ACK_TABLE_SIZE`).
    static let capacity = 256
    /// The least time for an acknowledgement: the radio's estimate is for one way of several, and the mesh may be busy.
    static let shortestLifetime: Duration = .seconds(120)

    /// In the order of sending.
    private var waiters: [Waiter] = []

    /// How many acknowledgements are awaited.
    var count: Int { waiters.count }

    /// The radio has sent a client's text: the receipt's code and its estimate. The code 0 means that none will come.
    mutating func sent(ack: UInt32, by client: UInt64, estimatedTimeout: Duration, now: Duration) {
        guard ack != 0 else { return }
        waiters.removeAll { $0.until <= now }
        if waiters.count == Self.capacity { waiters.remove(at: waiters.firstIndex { $0.client == client } ?? 0) }
        let until = now + max(estimatedTimeout * 3, Self.shortestLifetime)
        waiters.append(Waiter(ack: ack, client: client, until: until))
    }

    /// The radio tells of an acknowledgement. It is told once for each text.
    mutating func confirmed(_ ack: UInt32, now: Duration) -> Route {
        waiters.removeAll { $0.until <= now }
        guard let index = waiters.firstIndex(where: { $0.ack == ack }) else { return .unknown }
        let waiter = waiters.remove(at: index)
        return waiter.isGone ? .gone : .client(waiter.client)
    }

    /// Its acknowledgements are for nobody.
    mutating func clientLeft(_ client: UInt64) {
        for index in waiters.indices where waiters[index].client == client { waiters[index].isGone = true }
    }
}
