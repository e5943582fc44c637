// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshJournal

/// Messages that the radio has given out and the journal has not taken, the oldest first. Pure.
///
/// There is one at most as long as only this host reads the radio's messages: it reads no other before the journal has
/// that one. What comes unasked, late or for another interface of the radio cannot be held off, so there may be more.
struct UnstoredMessages {
    /// While the journal takes nothing, messages come unasked only: a radio holds 256 of its own at most, and what another
    /// interface reads in that time is more than likely a handful.
    static let limit = 64

    private var messages: [NewMessage] = []

    /// The one to be tried first.
    var first: NewMessage? { messages.first }

    /// The journal did not take a message. False when there is no room for it: those that wait were promised a place, so it
    /// is the newest that is lost.
    mutating func keep(_ message: NewMessage) -> Bool {
        guard messages.count < Self.limit else { return false }
        messages.append(message)
        return true
    }

    /// The journal has taken the first.
    mutating func firstStored() {
        messages.removeFirst()
    }
}
