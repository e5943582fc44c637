// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Every statement that is prepared once and kept.
enum JournalStatement: Hashable {
    case devices
    case addDevice
    case setHead
    case countMessages
    case newestMessage
    case findDuplicate
    case addMessage
    case oldestMessages
    case oldestMessagesOfDevice
    case deleteMessage
    case entries
    case sequenceBefore
    case oldestReceived
    case cursor
    case advanceCursor
    case moveCursor
    case addCursor
    case touchCursor
    case deleteCursor
    case forgetCursors
    case forgetCursorOfMost
    case countCursors
    case cursors

    var sql: String {
        switch self {
        case .devices: "SELECT id, name, head FROM device"
        case .addDevice: "INSERT INTO device(name, head) VALUES(?1, ?2) RETURNING id"
        case .setHead: "UPDATE device SET head = ?2 WHERE id = ?1"
        case .countMessages: "SELECT count(*) FROM message WHERE device = ?1"
        case .newestMessage: "SELECT max(sequence) FROM message"
        case .findDuplicate:
            "SELECT 1 FROM message WHERE device = ?1 AND key = ?2 AND received BETWEEN ?3 AND ?4 LIMIT 1"
        case .addMessage:
            "INSERT INTO message(sequence, device, received, origin, key, frame) VALUES(?1, ?2, ?3, ?4, ?5, ?6)"
        case .oldestMessages:
            "SELECT sequence, device, received FROM message WHERE sequence > ?1 ORDER BY sequence LIMIT ?2"
        case .oldestMessagesOfDevice: "SELECT sequence FROM message WHERE device = ?1 ORDER BY sequence LIMIT ?2"
        case .deleteMessage: "DELETE FROM message WHERE sequence = ?1"
        case .entries:
            """
            SELECT sequence, received, frame, origin FROM message WHERE device = ?1 AND sequence > ?2
            ORDER BY sequence LIMIT ?3
            """
        case .sequenceBefore:
            "SELECT sequence FROM message WHERE device = ?1 ORDER BY sequence DESC LIMIT 1 OFFSET ?2"
        case .oldestReceived: "SELECT received FROM message WHERE device = ?1 ORDER BY sequence LIMIT 1"
        case .cursor: "SELECT sequence, used FROM cursor WHERE identity = ?1 AND device = ?2"
        case .advanceCursor:
            "UPDATE cursor SET sequence = max(sequence, ?3), used = ?4 WHERE identity = ?1 AND device = ?2"
        case .moveCursor: "UPDATE cursor SET sequence = ?3, used = ?4 WHERE identity = ?1 AND device = ?2"
        case .addCursor: "INSERT INTO cursor(identity, device, sequence, used) VALUES(?1, ?2, ?3, ?4)"
        case .touchCursor: "UPDATE cursor SET used = ?3 WHERE identity = ?1 AND device = ?2"
        case .deleteCursor: "DELETE FROM cursor WHERE identity = ?1 AND device = ?2"
        case .forgetCursors:
            """
            DELETE FROM cursor WHERE (identity, device) IN
                (SELECT identity, device FROM cursor WHERE used < ?1 ORDER BY used LIMIT ?2)
            """
        // An identity's text form has each of the marks once, whatever the parts hold: ``ClientIdentity``.
        case .forgetCursorOfMost:
            """
            DELETE FROM cursor WHERE (identity, device) IN
                (SELECT identity, device FROM
                    (SELECT identity, device, used, share, count(*) OVER (PARTITION BY share) AS ofShare,
                        count(*) OVER (PARTITION BY share, address) AS ofAddress
                    FROM (SELECT identity, device, used, substr(identity, 1, instr(identity, '/')) AS share,
                        substr(identity, instr(identity, '@'), instr(identity, '#') - instr(identity, '@')) AS address
                        FROM cursor))
                ORDER BY ofShare DESC, ofAddress DESC, used LIMIT 1)
            """
        case .countCursors: "SELECT count(*) FROM cursor"
        case .cursors:
            """
            SELECT identity, name, sequence, used FROM cursor JOIN device ON device.id = cursor.device
            ORDER BY used DESC, identity
            """
        }
    }

    /// What it is for, as an error says it: "cannot …".
    var operation: String {
        switch self {
        case .devices, .newestMessage, .countMessages, .countCursors, .oldestReceived, .cursors: "read the journal"
        case .addDevice, .setHead, .findDuplicate, .addMessage: "keep a message"
        case .oldestMessages, .oldestMessagesOfDevice, .deleteMessage: "remove an old message"
        case .entries, .sequenceBefore: "read messages"
        case .cursor: "read a cursor"
        case .advanceCursor, .moveCursor, .addCursor, .touchCursor: "store a cursor"
        case .deleteCursor, .forgetCursors, .forgetCursorOfMost: "forget a cursor"
        }
    }
}
