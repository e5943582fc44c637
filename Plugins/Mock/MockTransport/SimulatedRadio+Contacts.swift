// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshWire

extension SimulatedRadio {
    /// GET_CONTACTS: the total, then row by row those changed after `since`, and the newest change among them. One list
    /// at a time (companion-protocol §1.9).
    mutating func listContacts(_ reader: inout ByteReader, now: Duration) throws(DecodeError) -> [[UInt8]] {
        let since: UInt32 = reader.remaining >= 4 ? try reader.read() : 0
        guard listing == nil else { return [SimulatedFrame.error(.badState)] }
        let rows = contacts.filter { $0.lastModified > since }
        let newest = rows.map(\.lastModified).max() ?? 0
        listing = ContactListing(
            rows: rows.map { $0.frame(code: 0x03) }[...], end: SimulatedFrame.number(0x04, newest))
        plan(.answer(SimulatedFrame.number(0x02, UInt32(contacts.count))), at: now + settings.answerDelay)
        plan(.contactRow, at: now + settings.answerDelay + settings.contactDelay)
        return []
    }

    mutating func nextContactRow(now: Duration) -> [Output] {
        guard var list = listing else { return [] }
        guard let row = list.rows.popFirst() else {
            listing = nil
            return [.sendFrame(list.end)]
        }
        listing = list
        plan(.contactRow, at: now + settings.contactDelay)
        return [.sendFrame(row)]
    }

    /// The contact whose key comes next.
    func contact(_ reader: inout ByteReader) throws(DecodeError) -> SimulatedContact? {
        let key = try reader.readBytes(32)
        return contacts.first { $0.publicKey == key }
    }

    mutating func storeContact(_ reader: inout ByteReader, now: Duration) throws(DecodeError) -> [[UInt8]] {
        let contact = try SimulatedContact(reading: &reader, now: clock(now))
        if let index = contacts.firstIndex(where: { $0.publicKey == contact.publicKey }) {
            contacts[index] = contact
        } else if contacts.count < SimulatedRadioSettings.maximumContacts {
            contacts.append(contact)
        } else {
            return [SimulatedFrame.error(.tableFull)]
        }
        return [SimulatedFrame.ok]
    }

    mutating func changeContact(
        _ reader: inout ByteReader, _ change: (inout SimulatedContact) -> Void
    ) throws(DecodeError) -> [[UInt8]] {
        let key = try reader.readBytes(32)
        guard let index = contacts.firstIndex(where: { $0.publicKey == key }) else {
            return [SimulatedFrame.error(.notFound)]
        }
        change(&contacts[index])
        return [SimulatedFrame.ok]
    }

    mutating func removeContact(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        let key = try reader.readBytes(32)
        guard let index = contacts.firstIndex(where: { $0.publicKey == key }) else {
            return [SimulatedFrame.error(.notFound)]
        }
        contacts.remove(at: index)
        return [SimulatedFrame.ok]
    }

    // MARK: Cards

    /// EXPORT_CONTACT: an advert packet of the contact, or of this radio where no key is given.
    func exportContact(_ reader: inout ByteReader, now: Duration) throws(DecodeError) -> [[UInt8]] {
        guard reader.remaining >= 32 else {
            let own = SimulatedContact(
                publicKey: publicKey, kind: .chat, name: name, path: nil, lastAdvert: clock(now), latitude: latitude,
                longitude: longitude, lastModified: 0)
            return [[0x0B] + own.advert]
        }
        guard let contact = try contact(&reader) else { return [SimulatedFrame.error(.notFound)] }
        return [[0x0B] + contact.advert]
    }

    /// IMPORT_CONTACT: the packet is taken as if it had just been heard.
    mutating func importContact(_ reader: inout ByteReader, now: Duration) throws(DecodeError) -> [[UInt8]] {
        guard reader.remaining >= SimulatedContact.shortestAdvert else {
            throw DecodeError(.truncated(missing: 1), offset: reader.offset)
        }
        guard let contact = SimulatedContact(advert: &reader, now: clock(now)) else {
            return [SimulatedFrame.error(.illegalArgument)]
        }
        if let index = contacts.firstIndex(where: { $0.publicKey == contact.publicKey }) {
            contacts[index].lastModified = clock(now)
        } else if contacts.count < SimulatedRadioSettings.maximumContacts {
            contacts.append(contact)
        }
        follow(with: .push([0x80] + contact.publicKey))
        return [SimulatedFrame.ok]
    }

    /// ADVERT_PATH: when and by which way the contact's last advert came.
    func advertPath(of contact: SimulatedContact?) -> [UInt8] {
        guard let contact, contact.pathByte != 0xFF else { return SimulatedFrame.error(.notFound) }
        return SimulatedFrame.number(0x16, contact.lastAdvert) + [contact.pathByte]
            + contact.path.prefix(Int(contact.pathByte))
    }

    /// Somebody's advert: mostly a contact's, now and then a new node's. With manual adding a new node is only shown.
    mutating func advertHeard(now: Duration) -> [Output] {
        packets.received += 1
        if contacts.isEmpty || world.chance(oneIn: 5) {
            let node = newNode(now: now)
            let isManual = otherParameters[3] & 1 == 1
            if isManual || contacts.count >= SimulatedRadioSettings.maximumContacts {
                return [.sendFrame(node.frame(code: 0x8A))]
            }
            contacts.append(node)
            return [.sendFrame([0x80] + node.publicKey)]
        }
        let index = world.number(0...contacts.count - 1)
        contacts[index].lastAdvert = clock(now)
        contacts[index].lastModified = clock(now)
        return [.sendFrame([0x80] + contacts[index].publicKey)]
    }
}
