// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshJournal

/// One client as a radio of its own would know it: the commands it has sent, the one being done, and what the firmware
/// keeps once for everybody and the host keeps for each. Belongs to the ``RadioSession`` that serves it and is used on the
/// loop only.
///
/// Commands are done one after the other, as a radio does them: the next one is looked at when the one before is answered.
final class VirtualCompanion {
    /// What the command being done waits for.
    enum Work {
        /// The lane. The command as the client sent it.
        case lane(Data)
        /// Its turn in the lane, as long as another mesh request is pending in the radio.
        case meshLane(Data, until: Duration)
        /// The link: a send that may wait for it.
        case link(Data, until: Duration)
        /// The journal: its identity's cursor, or its next message.
        case journal(Data)
        /// The end of the fetching that is going on: there may be messages then.
        case fetching(Data)
        /// The end of the pass over the radio's contacts.
        case contacts(Data)
        /// Room in its queue for more of a contact list.
        case listing(ContactList, next: Int)
    }

    let connection: ShareClient
    /// How many commands have come from it, and how many of those have been begun.
    private(set) var arrived = 0
    private(set) var begun = 0
    /// What it has sent and is not being done yet.
    private(set) var inbox: [Data] = []
    var work: Work?
    /// How many tasks of its own use the journal.
    var journalTasks = 0
    /// Its commands are being gone through.
    var isBeingServed = false
    /// The protocol version it asked for; the firmware begins with 0.
    var version: UInt8 = 0
    /// What the program calls itself (APP_START).
    var appName = ""
    /// Who it is for the journal; nil until its APP_START, or its first SYNC_NEXT_MESSAGE without one.
    var membership: Membership?
    /// The flood scope that its sends go out with.
    var scope = FloodScopes.Wanted.unset
    var signing = SigningSession()
    /// Pushes that are held back, until when: see ``RadioSession/giveNextMessage(to:_:)``.
    var hold: (until: Duration, pushes: [Data])?

    /// A client's place in the messages.
    struct Membership {
        var identity: ClientIdentity
        /// The last message that it was given.
        var cursor: Int64
        /// The last message that it is known to have got.
        var confirmed: Int64
        /// The last one was given after the client had closed its side: whether it was read cannot be known.
        var isInDoubt = false
        /// So many commands had come when it was given: none of them shows that it was read.
        var givenAfter = 0
        /// Entries after the cursor that have been read from the journal already.
        var ahead: ArraySlice<JournalEntry> = []
    }

    init(connection: ShareClient) {
        self.connection = connection
    }

    var id: UInt64 { connection.id }
    var role: ClientRole { connection.role }

    /// The command being done shows that the client has read what it was given, if it came after that.
    func confirmIfLater() {
        if let membership, begun > membership.givenAfter { self.membership?.confirm() }
    }

    /// Whether everything that it sent has been answered.
    var isIdle: Bool { work == nil && inbox.isEmpty }

    func received(_ command: Data) {
        arrived += 1
        inbox.append(command)
    }

    /// The next command to be done.
    func takeNext() -> Data? {
        // At most `RadioSession.commandsPerClient` wait.
        guard work == nil, !inbox.isEmpty else { return nil }
        begun += 1
        return inbox.removeFirst()
    }

    /// When the command being done may not wait any longer, or pushes may not.
    var deadline: Duration? {
        switch work {
        case .meshLane(_, let until), .link(_, let until): hold.map { min(until, $0.until) } ?? until
        case .lane, .journal, .fetching, .contacts, .listing, nil: hold?.until
        }
    }
}
