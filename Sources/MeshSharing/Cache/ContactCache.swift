// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

/// The radio's contacts as far as the host knows them, and what it takes to know them all.
///
/// The radio's list is read in passes of GET_CONTACTS. The first is full; later ones ask for what changed since. The
/// filter is the radio's own clock in the row (`lastmod`), which leads to these rules:
///
/// - A change that is not known yet happened after the last pass **began**: rows are sent one after the other, and one
///   that has been sent may change while the rest follows. So a pass asks for changes since the radio's time at the
///   beginning of the one before, less five seconds, because the filter is strict and the clock counts seconds. The
///   newest row does not stand for that time: ADD_UPDATE_CONTACT lets a client write a time of the future.
/// - If the radio has not told its time on this link, the pass is full and so is the next.
/// - If the clock jumped and nobody here set it, the next pass is full. Mostly that is a restart: a radio without a
///   clock of its own then begins one second after the newest contact that it has stored (`bootstrapRTCfromContacts`),
///   and it stores contacts five seconds late (`LAZY_CONTACTS_WRITE_DELAY`), so changes may also be undone.
/// - Removals have no time. They show in the total, which each pass begins with: if it is another than what is known
///   then a full pass follows. If contacts came or went during a pass its total tells nothing, and the next pass is
///   looked at.
/// - A contact that claims to have changed at 0 is counted and never listed (`_iter_filter_since`). So if a full pass
///   has too few rows, and the one after it too, it is not that rows were lost: these contacts are *unlisted*.
///
/// What no pass but a full one can show: a path that somebody else resets, or a time of the past that somebody else
/// writes, through the radio's other interface. The host's own clients' are known, since their commands pass through
/// here.
struct ContactCache: Sendable {
    /// How much of the radio's list is known.
    enum State: Sendable, Equatable {
        /// Never read, or another radio's.
        case unknown
        /// The radio has no GET_CONTACTS.
        case unsupported
        /// Read, but something may have changed: a pass that asks `since` makes it valid; 0 is a full one.
        case stale(since: UInt32)
        case valid
    }

    /// What GET_CONTACT_BY_KEY may be told.
    enum Found: Equatable {
        case row(Data, isSure: Bool)
        case missing
        case unknown
    }

    /// A list that is being read.
    private struct Pass {
        let isFull: Bool
        /// What the pass after this one asks for.
        var nextSince: UInt32
        var total: UInt32?
        /// The rows of a full pass.
        var listed = ContactTable()
        /// Something changed, perhaps in a row that had been sent.
        var isDisturbed = false
        /// Contacts came or went after the total was told.
        var isMiscounted = false
    }

    /// How much earlier than the clock at the last pass the next one begins, in seconds: more than
    /// ``RadioClock/tolerance``.
    private static let margin: UInt32 = 5

    private var table = ContactTable()
    private var isComplete = false
    private var isSure = false
    private var isSupported = true
    /// Contacts that the radio counts and does not list.
    private var unlisted = 0
    private var since: UInt32 = 0
    private var pass: Pass?
    /// The full pass under way was wanted because the full one before it had too few rows.
    private var isSecondLook = false

    var state: State {
        if !isSupported { return .unsupported }
        if !isComplete { return .unknown }
        return isSure ? .valid : .stale(since: since)
    }

    /// How many rows are known.
    var count: Int { table.count }

    // MARK: Answers

    /// The answer to a client's GET_CONTACTS: good in the state `valid`, and the best there is while the radio is away.
    func list(since: UInt32) -> ContactList { ContactList(table, unlisted: unlisted, since: since) }

    /// The row of a contact, perhaps out of date.
    subscript(key: PublicKey) -> ContactRow? { table[key] }

    func find(_ key: PublicKey) -> Found {
        if let row = table[key] { return .row(row.frame, isSure: state == .valid) }
        return state == .valid && unlisted == 0 ? .missing : .unknown
    }

    // MARK: Passes

    /// A pass begins with this command. `clock` is a time that the radio's clock has passed, if that is known.
    mutating func passBegan(clock: UInt32?) -> Data {
        let isFull = !isComplete || since == 0 || clock == nil
        pass = Pass(isFull: isFull, nextSince: clock.map { $0 > Self.margin ? $0 - Self.margin : 0 } ?? 0)
        let command = Data([CommandCode.getContacts.rawValue])
        return isFull ? command : command + Data.field32(since)
    }

    /// CONTACTS_START or a row of the pass.
    mutating func passReceived(_ frame: Data) {
        guard pass != nil else { return }
        if frame.first == ReplyCode.contactsStart.rawValue {
            pass?.total = frame.field32(at: 1)
        } else if let row = ContactRow(frame) {
            if pass?.isFull == true { pass?.listed.put(row) } else { table.put(row) }
        }
    }

    /// The frame that ends the pass. Whether a full pass must follow.
    mutating func passEnded(_ frame: Data) -> Bool {
        guard let pass else { return false }
        self.pass = nil
        if frame.first == ReplyCode.error.rawValue, frame.field8(at: 1) == CompanionErrorCode.unsupported.rawValue {
            isSupported = false
            return false
        }
        // Without the total there is nothing to compare the rows with.
        guard frame.first == ReplyCode.endOfContacts.rawValue, let total = pass.total.map(Int.init) else {
            return false
        }
        if pass.isFull { return fullPassEnded(pass, total) }
        if !pass.isMiscounted, table.count + unlisted != total {
            isSure = false
            since = 0
            return true
        }
        since = pass.nextSince
        isSure = !pass.isDisturbed && !pass.isMiscounted
        return false
    }

    private mutating func fullPassEnded(_ pass: Pass, _ total: Int) -> Bool {
        table = pass.listed
        isComplete = true
        let missing = max(total - table.count, 0)
        // Rows may have got lost: the next pass will tell. It is believed, else this would not end.
        if !pass.isMiscounted, table.count + unlisted != total, !isSecondLook {
            isSure = false
            since = 0
            isSecondLook = true
            return true
        }
        isSecondLook = false
        if !pass.isMiscounted { unlisted = missing }
        since = pass.nextSince
        isSure = !pass.isDisturbed && !pass.isMiscounted
        return false
    }

    /// The pass did not come to its end. What it brought is kept; the next one asks for the same again.
    mutating func passFailed() {
        pass = nil
    }

    // MARK: Changes

    /// A contact changed, or came: its row is not known.
    mutating func changed(_ key: PublicKey) {
        doubt()
        if table[key] == nil { pass?.isMiscounted = true }
    }

    /// Something may have changed.
    mutating func doubt() {
        isSure = false
        pass?.isDisturbed = true
    }

    /// The radio told a row by itself or because it was asked for it.
    mutating func put(_ row: ContactRow) {
        if let pass, pass.listed[row.key] != nil { self.pass?.listed.put(row) }
        switch table.put(row) {
        case .replaced: return
        case .noRoom: return doubt()
        case .added: pass?.isMiscounted = true
        }
        if row.lastModified == 0, unlisted > 0 {
            unlisted -= 1
        } else {
            isSure = false
        }
    }

    /// A contact is gone. Whether it was known.
    @discardableResult
    mutating func removed(_ key: PublicKey) -> Bool {
        pass?.isMiscounted = true
        pass?.listed.remove(key)
        if table.remove(key) { return true }
        if unlisted > 0 { unlisted -= 1 } else { doubt() }
        return false
    }

    /// The way to a contact is unknown from now on.
    mutating func pathReset(_ key: PublicKey) {
        pass?.listed.resetPath(key)
        if !table.resetPath(key) { doubt() }
    }

    // MARK: Clock and link

    /// The radio's clock jumped: times tell nothing of what changed.
    mutating func clockJumped() {
        doubt()
        since = 0
        pass?.nextSince = 0
    }

    /// The link is gone: whatever may have changed meanwhile, and the radio may start again with another firmware.
    mutating func linkLost() {
        pass = nil
        isSure = false
        isSupported = true
        isSecondLook = false
    }

    /// Another radio, or this one with another key.
    mutating func forget() {
        self = ContactCache()
    }
}
