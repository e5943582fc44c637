// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI

/// The radio's contacts, and the copy of them.
extension MeshCoreSession {
    // MARK: Lists

    /// Those contacts that have changed after `since`, by the radio's clock, seconds since 1970; all if nil.
    ///
    /// The list is over when the radio says so, whatever number it announced. ``contactBook`` learns from it.
    public func contacts(since: UInt32? = nil) async throws(MeshError) -> ContactListing {
        let command = try encode(.getContacts(since: since))
        let replies = try await ask(command).replies
        var list = ContactListing(total: 0, contacts: [], latestChange: 0)
        for reply in replies {
            switch try decode(reply, to: command) {
            case .contactsStart(let total): list.total = total
            case .contact(let contact): list.contacts.append(contact)
            case .endOfContacts(let change): list.latestChange = change
            default: throw .unreadable(command)
            }
        }
        let isFirst = !contactBook.isComplete
        let changes = since == nil ? contactBook.replace(with: list) : contactBook.update(with: list)
        if since == nil, isFirst {
            emit(.contactsFetched(count: contactBook.count))
        } else {
            for contact in changes.changed { emit(.contactChanged(contact)) }
            for key in changes.removed { emit(.contactRemoved(key)) }
        }
        return list
    }

    /// Brings the copy up to date: asks for what has changed, and for everything if the numbers then differ. (The radio
    /// does not tell which contacts are gone.)
    public func refreshContacts() async throws(MeshError) -> ContactBook {
        if contactBook.isComplete {
            let list = try await contacts(since: contactBook.latestChange)
            if Int(list.total) == contactBook.count { return contactBook }
        }
        _ = try await contacts()
        return contactBook
    }

    /// For the start of a link.
    func fetchContacts() async throws(MeshError) {
        if settings.keepsContacts { _ = try await refreshContacts() }
    }

    // MARK: One contact

    /// The contact with this key; nil if the radio has none.
    public func contact(_ key: PublicKey) async throws(MeshError) -> Contact? {
        let contact = try await found { () throws(MeshError) in
            try await ask(.getContactByKey(key)) { if case .contact(let contact) = $0 { contact } else { nil } }
        }
        if let contact {
            if contactBook.put(contact), contactBook.isComplete { emit(.contactChanged(contact)) }
        } else if contactBook.remove(key) {
            emit(.contactRemoved(key))
        }
        return contact
    }

    /// Adds a contact, or changes it. Throws `radio.table-full` when there is no room.
    public func addOrUpdate(_ update: ContactUpdate) async throws(MeshError) {
        try await confirm(.addUpdateContact(update))
        // What the radio made of it, its clock for one, only the radio knows.
        contactIsStale(update.publicKey)
    }

    /// Removes a contact. Throws `radio.not-found` if the radio has none with this key.
    public func removeContact(_ key: PublicKey) async throws(MeshError) {
        try await confirm(.removeContact(key))
        if contactBook.remove(key) { emit(.contactRemoved(key)) }
    }

    /// Forgets the way to a contact, so that the next message to it is flooded. Throws `radio.not-found` if the radio has
    /// no such contact.
    public func resetPath(of key: PublicKey) async throws(MeshError) {
        try await confirm(.resetPath(key))
        // The radio does not count this as a change, so no list will tell (companion-protocol §1.5).
        if let contact = contactBook.resetPath(of: key) { emit(.contactChanged(contact)) }
    }

    /// Sends a contact's advert to the neighbours.
    public func shareContact(_ key: PublicKey) async throws(MeshError) {
        try await confirm(.shareContact(key))
    }

    /// A contact's advert, or the radio's own if nil: a packet that ``importContact(_:)`` takes.
    public func exportContact(_ key: PublicKey? = nil) async throws(MeshError) -> Data {
        try await ask(.exportContact(key)) { if case .exportedContact(let packet) = $0 { packet } else { nil } }
    }

    /// Makes a contact from its advert, a packet of at least 98 bytes. Throws `radio.illegal-argument` for another packet.
    public func importContact(_ packet: Data) async throws(MeshError) {
        try await confirm(.importContact(packet))
    }

    /// How a node's last advert came in; nil if the radio does not remember. (It remembers 16.)
    public func advertPath(of key: PublicKey) async throws(MeshError) -> AdvertPath? {
        try await found { () throws(MeshError) in
            try await ask(.getAdvertPath(key)) { if case .advertPath(let path) = $0 { path } else { nil } }
        }
    }

    /// Whether the radio keeps a connection with this node alive, as it does after a login.
    public func hasConnection(to key: PublicKey) async throws(MeshError) -> Bool {
        try await found { () throws(MeshError) in try await confirm(.hasConnection(key)) } != nil
    }

    // MARK: The copy

    /// The radio has said, or it follows, that the contact is not what the copy says. It is fetched.
    func contactIsStale(_ key: PublicKey) {
        guard settings.keepsContacts, isServing, !staleContacts.contains(key) else { return }
        staleContacts.append(key)
        guard !isRefreshing else { return }
        isRefreshing = true
        begin { await $0.refreshStaleContacts() }
    }

    private func refreshStaleContacts() async {
        while !staleContacts.isEmpty {
            let key = staleContacts.removeFirst()
            do throws(MeshError) {
                _ = try await contact(key)
            } catch {
                environment.log(.info, "a contact could not be fetched", [("error", "\(error)")])
            }
        }
        isRefreshing = false
    }
}
