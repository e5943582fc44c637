// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI

extension JournalDatabase {
    /// How many messages one call removes at most, for each of the two reasons: enough to catch up, too few to be felt.
    /// It is also what a clock that jumps ahead can cost.
    private static let removedAtOnce = 8
    /// How far ahead of the clock a message's time may be: clocks are set back a little every day.
    private static let futureMargin: Int64 = 86_400_000

    /// Keeps a message; nil if it is a duplicate.
    func append(_ message: NewMessage, at moment: JournalMoment) throws(JournalError) -> JournalEntry? {
        let connection = try connected()
        let device = try device(named: message.device)
        let window = (message.duplicateWindow ?? settings.duplicateWindow).milliseconds
        let isKnown = try connection.first(
            .findDuplicate, .integer(device.id), .blob(message.key),
            .integer(message.receivedAt.saturatingAdd(-window)), .integer(message.receivedAt.saturatingAdd(window))
        ) { _ in true }
        if isKnown != nil { return nil }

        let sequence = book.lastSequence + 1
        try connection.run(
            .addMessage, .integer(sequence), .integer(device.id), .integer(message.receivedAt),
            message.origin.map { .text($0) } ?? .null, .blob(message.key), .blob(message.frame))
        try connection.run(.setHead, .integer(device.id), .integer(sequence))
        book.lastSequence = sequence
        book.devices[message.device]?.head = sequence
        book.devices[message.device]?.entries = try entries(of: device) + (device.entries == nil ? 0 : 1)
        try removeSurplus(of: message.device)
        try removeExpired(at: moment)
        return JournalEntry(
            sequence: sequence, device: message.device, receivedAt: message.receivedAt, frame: message.frame,
            origin: message.origin)
    }

    /// Messages of a device after a number, oldest first.
    func entries(of device: String, after sequence: Int64, limit: Int) throws(JournalError) -> [JournalEntry] {
        guard let id = book.devices[device]?.id else { return [] }
        return try connected().rows(.entries, .integer(id), .integer(sequence), .integer(Int64(limit))) { row in
            JournalEntry(
                sequence: row.integer(0), device: device, receivedAt: row.integer(1), frame: row.blob(2),
                origin: row.text(3))
        }
    }

    /// The number after which `count` messages of a device are left.
    func sequence(before count: Int, of device: String) throws(JournalError) -> Int64 {
        guard let device = book.devices[device] else { return 0 }
        guard count > 0 else { return device.head }
        return try connected().first(.sequenceBefore, .integer(device.id), .integer(Int64(count))) { $0.integer(0) }
            ?? 0
    }

    func statistics() throws(JournalError) -> JournalStatistics {
        let connection = try connected()
        var devices: [JournalStatistics.Device] = []
        for (name, device) in book.devices.sorted(by: { $0.key < $1.key }) {
            let count = try entries(of: device)
            book.devices[name]?.entries = count
            let oldest = try connection.first(.oldestReceived, .integer(device.id)) { $0.integer(0) }
            devices.append(.init(name: name, entries: count, head: device.head, oldest: oldest))
        }
        let cursors = try connection.rows(.cursors) { row -> JournalStatistics.Cursor? in
            // Another version may write others.
            guard let identity = row.text(0).flatMap({ ClientIdentity($0) }) else { return nil }
            return .init(
                identity: identity, device: row.text(1) ?? "", sequence: row.integer(2), usedAt: row.integer(3))
        }
        return JournalStatistics(devices: devices, cursors: cursors.compactMap(\.self), bytes: file?.size ?? 0)
    }

    /// A device's facts; it gets a row when it is new.
    func device(named name: String) throws(JournalError) -> Device {
        if let device = book.devices[name] { return device }
        let id = try connected().first(.addDevice, .text(name), .integer(0)) { $0.integer(0) }
        guard let id else { throw .closed }
        let device = Device(id: id, head: 0, entries: 0)
        book.devices[name] = device
        return device
    }

    private func entries(of device: Device) throws(JournalError) -> Int {
        if let entries = device.entries { return entries }
        return Int(try connected().first(.countMessages, .integer(device.id)) { $0.integer(0) } ?? 0)
    }

    /// Removes the oldest messages of a device that has too many.
    private func removeSurplus(of name: String) throws(JournalError) {
        guard let device = book.devices[name], let entries = device.entries else { return }
        let surplus = min(entries - max(1, settings.maximumEntries), Self.removedAtOnce)
        guard surplus > 0 else { return }
        let connection = try connected()
        let oldest = try connection.rows(.oldestMessagesOfDevice, .integer(device.id), .integer(Int64(surplus))) {
            $0.integer(0)
        }
        for sequence in oldest { try connection.run(.deleteMessage, .integer(sequence)) }
        book.devices[name]?.entries = entries - oldest.count
    }

    /// Removes messages that are too old, of whatever device.
    private func removeExpired(at moment: JournalMoment) throws(JournalError) {
        let connection = try connected()
        let limit = moment.wallClock.saturatingAdd(-settings.maximumAge.milliseconds)
        let oldest = try connection.rows(
            .oldestMessages, .integer(book.agePosition), .integer(Int64(Self.removedAtOnce))
        ) { row in (sequence: row.integer(0), device: row.integer(1), received: row.integer(2)) }
        for message in oldest {
            // Nothing is older than the time in which it came. A clock that was wrong until the network set it makes it
            // look so.
            if message.sequence >= firstSequence, moment.uptime - openedAt < settings.maximumAge { return }
            if message.received > moment.wallClock.saturatingAdd(Self.futureMargin) {
                // Its time says nothing; the number of messages bounds it. What came later may be too old all the same.
                book.agePosition = message.sequence
            } else if message.received < limit {
                try connection.run(.deleteMessage, .integer(message.sequence))
                let name = book.devices.first { $0.value.id == message.device }?.key
                if let name, let entries = book.devices[name]?.entries { book.devices[name]?.entries = entries - 1 }
            } else {
                return
            }
        }
    }
}
