// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The tables, and how older ones become these. The version is the file's `user_version`.
enum JournalSchema {
    /// Marks the file as ours (`application_id`): "MHJL".
    static let applicationID: Int64 = 0x4D48_4A4C

    /// The version that this program reads and writes.
    static var version: Int64 { Int64(steps.count) }

    /// Step `n` makes version `n + 1` of version `n`. A step that was once published never changes.
    ///
    /// The newest number of a device outlives its messages, so that numbers are never used again. `message_key` finds
    /// duplicates, `message_device` what a client has not read: a row's number is part of every index.
    static let steps: [String] = [
        """
        CREATE TABLE device(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, head INTEGER NOT NULL);
        CREATE TABLE message(
            sequence INTEGER PRIMARY KEY, device INTEGER NOT NULL, received INTEGER NOT NULL, origin TEXT,
            key BLOB NOT NULL, frame BLOB NOT NULL);
        CREATE INDEX message_device ON message(device);
        CREATE INDEX message_key ON message(device, key, received);
        CREATE TABLE cursor(
            identity TEXT NOT NULL, device INTEGER NOT NULL, sequence INTEGER NOT NULL, used INTEGER NOT NULL,
            PRIMARY KEY(identity, device)) WITHOUT ROWID;
        CREATE INDEX cursor_used ON cursor(used);
        CREATE VIEW messages AS
            SELECT sequence, name AS device, strftime('%Y-%m-%dT%H:%M:%fZ', received / 1000.0, 'unixepoch') AS received,
                origin, lower(hex(frame)) AS frame
            FROM message JOIN device ON device.id = message.device;
        CREATE VIEW cursors AS
            SELECT identity, name AS device, sequence, head,
                strftime('%Y-%m-%dT%H:%M:%fZ', used / 1000.0, 'unixepoch') AS used
            FROM cursor JOIN device ON device.id = cursor.device;
        """
    ]
}
