// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

extension JournalDatabase {
    /// A cursor and when it was last used; nil if the identity has none.
    func cursor(of identity: String, device: String) throws(JournalError) -> (sequence: Int64, usedAt: Int64)? {
        guard let id = book.devices[device]?.id else { return nil }
        return try connected().first(.cursor, .text(identity), .integer(id)) { ($0.integer(0), $0.integer(1)) }
    }

    /// Stores a cursor. It goes back only where that is meant.
    func setCursor(
        _ sequence: Int64, of identity: String, device: String, rewinding: Bool, at moment: JournalMoment
    ) throws(JournalError) {
        let connection = try connected()
        let id = try self.device(named: device).id
        let changed = try connection.run(
            rewinding ? .moveCursor : .advanceCursor, .text(identity), .integer(id), .integer(sequence),
            .integer(moment.wallClock))
        if changed > 0 { return }
        try forgetCursors(at: moment)
        try connection.run(
            .addCursor, .text(identity), .integer(id), .integer(sequence), .integer(moment.wallClock))
        book.cursors += 1
    }

    /// Notes that a cursor is used.
    func touchCursor(of identity: String, device: String, at moment: JournalMoment) throws(JournalError) {
        guard let id = book.devices[device]?.id else { return }
        try connected().run(.touchCursor, .text(identity), .integer(id), .integer(moment.wallClock))
    }

    /// Forgets a cursor, if there is one.
    func forgetCursor(of identity: String, device: String) throws(JournalError) {
        guard let id = book.devices[device]?.id else { return }
        book.cursors -= try connected().run(.deleteCursor, .text(identity), .integer(id))
    }

    /// Makes room before one more is added: some that were not used for long, and one more if there are too many still.
    ///
    /// A client can call itself what it likes. So it is not simply the one used longest ago that goes, for then anybody
    /// could take everybody's place away: it is one of the address that has the most, on the share that has the most.
    private func forgetCursors(at moment: JournalMoment) throws(JournalError) {
        let connection = try connected()
        let limit = moment.wallClock.saturatingAdd(-settings.cursorAge.milliseconds)
        book.cursors -= try connection.run(.forgetCursors, .integer(limit), .integer(16))
        if book.cursors >= max(1, settings.maximumCursors) {
            book.cursors -= try connection.run(.forgetCursorOfMost)
        }
    }
}
