// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Which of several connections of the same program is which.
///
/// Nothing in the protocol identifies a client, so the host knows a program by its share, its app name and its address:
/// its *base*. Two of one base at the same time are told apart by a number, the *slot*: each has read other messages. A
/// program that comes back shall find its own: it takes the lowest slot that is free, which is its old one if it was
/// alone.
///
/// But a program whose network broke comes back before the host has found out that the old connection is dead, and so
/// gets another slot, and with it other messages. When the dead connection is found out, the first one of that base
/// which came after the dead one was heard from the last time is taken for the same program, and gets the dead one's
/// slot. One that came before is somebody else, and so is any if the connection was closed properly, by whichever side. If the program had
/// to come back twice, the slot goes from the first to the second connection and then on to the third.
struct ClientSlots: Sendable {
    /// A client that has another slot from now on.
    struct Handover: Sendable, Equatable {
        var client: UInt64
        var slot: Int
    }

    private struct Client {
        let id: UInt64
        var slot: Int
        let joined: Duration
    }

    /// By base, in the order of joining.
    private var clients: [String: [Client]] = [:]
    private var bases: [UInt64: String] = [:]

    /// How many clients have a slot.
    var count: Int { bases.count }

    /// A client has said who it is. The lowest free slot, from 1. A client that says so again is another one from then
    /// on if its base is another, else it keeps its slot.
    mutating func join(base: String, client: UInt64, now: Duration) -> Int {
        if bases[client] == base, let known = clients[base]?.first(where: { $0.id == client }) { return known.slot }
        _ = left(client: client, isGraceful: true, lastHeard: now)
        let taken = Set(clients[base, default: []].map(\.slot))
        let slot = (1...taken.count + 1).first { !taken.contains($0) } ?? taken.count + 1
        clients[base, default: []].append(Client(id: client, slot: slot, joined: now))
        bases[client] = base
        return slot
    }

    /// The slot that a client has now.
    func slot(of client: UInt64) -> Int? {
        bases[client].flatMap { clients[$0]?.first { $0.id == client }?.slot }
    }

    /// A client's connection has ended: properly, or by a time-out, a reset or an error, having been heard from the
    /// last time then. Who gets its slot.
    mutating func left(client: UInt64, isGraceful: Bool, lastHeard: Duration) -> Handover? {
        guard let base = bases.removeValue(forKey: client), var others = clients[base],
            let index = others.firstIndex(where: { $0.id == client })
        else { return nil }
        let gone = others.remove(at: index)
        var handover: Handover?
        // One with a lower slot has its own, or has taken over from another.
        if !isGraceful,
            let heir = others.firstIndex(where: { $0.joined >= lastHeard && $0.slot > gone.slot })
        {
            others[heir].slot = gone.slot
            handover = Handover(client: others[heir].id, slot: gone.slot)
        }
        clients[base] = others.isEmpty ? nil : others
        return handover
    }
}
