// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

/// The answer to one client's GET_CONTACTS, as it was when it was asked for: changes come too late for it. The rows are
/// shared with the cache, so it costs little to hold while a slow client takes it.
struct ContactList: Sendable {
    private let rows: [ContactRow]
    /// CONTACTS_START, with the number of all contacts: not of the rows that follow.
    let start: Data
    /// END_OF_CONTACTS, with the latest change among the rows that were sent; 0 if there were none.
    let end: Data

    /// The contacts that changed after `since`, strictly, as in the firmware (`MyMesh::checkSerialInterface`); also for
    /// 0, so one that claims to have changed at 0 is never listed.
    init(_ table: ContactTable, unlisted: Int, since: UInt32) {
        rows = table.rows.filter { $0.lastModified > since }
        start = Self.frame(.contactsStart, UInt32(clamping: table.count + unlisted))
        end = Self.frame(.endOfContacts, rows.reduce(0) { max($0, $1.lastModified) })
    }

    /// How many rows there are between start and end.
    var count: Int { rows.count }

    /// A CONTACT frame.
    func row(at index: Int) -> Data { rows[index].frame }

    private static func frame(_ code: ReplyCode, _ number: UInt32) -> Data {
        Data([code.rawValue]) + Data.field32(number)
    }
}
