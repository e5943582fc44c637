// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

// The contact list: how the host reads it, and what a client gets. The rules are at ``ContactCache``.
extension RadioCache {
    /// How much of the radio's list is known. If it is `unsupported`, GET_CONTACTS goes to the radio.
    var contactsState: ContactCache.State { contacts.state }

    /// The host reads the list: it sends this command, full or for what changed. The frames go to
    /// ``contactsReceived(_:)``; if they do not come to an end, ``contactsPassFailed()`` is called. A pass that begins
    /// replaces one that has not ended.
    mutating func contactsPassBegan(now: Duration) -> Data {
        contacts.passBegan(clock: clock.passed(now: now))
    }

    /// What a frame of a pass means.
    enum ContactsPass: Sendable, Equatable {
        case more
        /// The pass is over. ``contactsState`` is `valid`, or `stale` if something changed meanwhile.
        case ended
        /// The pass is over and showed that contacts are missing or gone: another one, which will be full, is needed.
        case needsFullPass
        /// The radio could not. `unsupported`, or as before.
        case failed
    }

    /// A frame that the radio sent in answer to the pass's command.
    mutating func contactsReceived(_ frame: Data) -> ContactsPass {
        switch frame.first.flatMap(ReplyCode.init) {
        case .contactsStart, .contact:
            contacts.passReceived(frame)
            return .more
        case .endOfContacts:
            return contacts.passEnded(frame) ? .needsFullPass : .ended
        default:
            _ = contacts.passEnded(frame)
            return .failed
        }
    }

    /// The pass ended without its last frame: a time-out, or the link is gone.
    mutating func contactsPassFailed() {
        contacts.passFailed()
    }

    /// The answer to a client's GET_CONTACTS. Good in the state `valid`; the best there is while the radio is away.
    func contactList(since: UInt32) -> ContactList { contacts.list(since: since) }

    /// The CONTACT frame of a contact as it was last told.
    func contact(_ key: PublicKey) -> Data? { contacts[key]?.frame }
}
