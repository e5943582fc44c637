// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

/// Contacts in the order in which the radio told of them, found by key.
struct ContactTable: Sendable {
    /// What became of a row that was put in.
    enum Put {
        case added
        /// It is in the place of the one with its key.
        case replaced
        /// The table is full.
        case noRoom
    }

    /// More than any radio has: no firmware is built for more than 3,000 contacts.
    static let capacity = 10_000

    private(set) var rows: [ContactRow] = []
    private var positions: [PublicKey: Int] = [:]

    var count: Int { rows.count }

    subscript(key: PublicKey) -> ContactRow? { positions[key].map { rows[$0] } }

    /// Puts a row in the place of the one with its key, or at the end.
    @discardableResult
    mutating func put(_ row: ContactRow) -> Put {
        if let position = positions[row.key] {
            rows[position] = row
            return .replaced
        }
        guard rows.count < Self.capacity else { return .noRoom }
        positions[row.key] = rows.count
        rows.append(row)
        return .added
    }

    /// Takes a row out, as the radio does: those after it move up. Whether it was there.
    @discardableResult
    mutating func remove(_ key: PublicKey) -> Bool {
        guard let position = positions.removeValue(forKey: key) else { return false }
        rows.remove(at: position)
        for index in rows.indices.dropFirst(position) { positions[rows[index].key] = index }
        return true
    }

    /// Makes the way to a contact unknown. Whether it was there.
    @discardableResult
    mutating func resetPath(_ key: PublicKey) -> Bool {
        guard let position = positions[key] else { return false }
        rows[position].resetPath()
        return true
    }
}
