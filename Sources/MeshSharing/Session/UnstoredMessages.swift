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

    private var messages: [(number: UInt64, message: NewMessage)] = []
    private var lastNumber: UInt64 = 0

    /// The one to be tried first, with the number it is known by.
    var first: (number: UInt64, message: NewMessage)? { messages.first }

    /// The journal did not take a message. False when there is no room for it: those that wait were promised a place, so it
    /// is the newest that is lost.
    mutating func keep(_ message: NewMessage) -> Bool {
        guard messages.count < Self.limit else { return false }
        lastNumber += 1
        messages.append((lastNumber, message))
        return true
    }

    /// The journal has taken this one; it may have been told so twice, by two who tried at once.
    mutating func stored(_ number: UInt64) {
        if messages.first?.number == number { messages.removeFirst() }
    }
}
