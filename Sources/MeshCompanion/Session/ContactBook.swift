// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What GET_CONTACTS gave.
public struct ContactListing: Sendable, Hashable {
    /// How many contacts the radio has, which is more than there are rows when only changes were asked for.
    public var total: UInt32
    public var contacts: [Contact]
    /// When the contact changed that changed last, by the radio's clock; 0 if there is no row. What the next `since` is.
    public var latestChange: UInt32

    public init(total: UInt32, contacts: [Contact], latestChange: UInt32) {
        self.total = total
        self.contacts = contacts
        self.latestChange = latestChange
    }
}

/// A copy of a radio's contacts. A value: it says what a list, a row or a push changes in it.
public struct ContactBook: Sendable, Hashable {
    /// What a list has changed.
    public struct Changes: Sendable, Hashable {
        public var changed: [Contact] = []
        public var removed: [PublicKey] = []

        public init() {}
    }

    private var byKey: [PublicKey: Contact] = [:]
    /// Whether every contact of the radio has been seen.
    public private(set) var isComplete = false
    /// When the contact changed that changed last, by the radio's clock, as far as lists have told.
    public private(set) var latestChange: UInt32 = 0

    /// An empty copy.
    public init() {}

    /// How many contacts there are.
    public var count: Int { byKey.count }

    /// The contacts, by name and then by key.
    public var contacts: [Contact] {
        byKey.values.sorted {
            ($0.name, $0.publicKey.description) < ($1.name, $1.publicKey.description)
        }
    }

    /// The contact with this key.
    public subscript(key: PublicKey) -> Contact? { byKey[key] }

    /// The contact whose key begins so, if there is just one.
    public func contact(_ prefix: KeyPrefix) -> Contact? {
        let found = byKey.values.filter { $0.publicKey.prefix == prefix }
        return found.count == 1 ? found[0] : nil
    }

    /// The contact with this name, if there is just one. Names are what nodes call themselves: they prove nothing.
    public func contact(named name: String) -> Contact? {
        let found = byKey.values.filter { $0.name == name }
        return found.count == 1 ? found[0] : nil
    }

    /// Puts in what the radio has told of a contact; whether that changed anything.
    public mutating func put(_ contact: Contact) -> Bool {
        guard byKey.updateValue(contact, forKey: contact.publicKey) != contact else { return false }
        return true
    }

    /// Takes out a contact; whether it was there.
    public mutating func remove(_ key: PublicKey) -> Bool {
        byKey.removeValue(forKey: key) != nil
    }

    /// The way to a contact is not known any more.
    public mutating func resetPath(of key: PublicKey) -> Contact? {
        guard var contact = byKey[key], contact.pathByte != .none else { return nil }
        contact.pathByte = .none
        byKey[key] = contact
        return contact
    }

    /// Takes in a whole list: what is not in it is gone.
    public mutating func replace(with list: ContactListing) -> Changes {
        var changes = Changes()
        let keys = Set(list.contacts.map(\.publicKey))
        for key in byKey.keys where !keys.contains(key) { changes.removed.append(key) }
        for key in changes.removed { byKey[key] = nil }
        merge(list, &changes)
        isComplete = true
        return changes
    }

    /// Takes in a list of changes.
    public mutating func update(with list: ContactListing) -> Changes {
        var changes = Changes()
        merge(list, &changes)
        return changes
    }

    private mutating func merge(_ list: ContactListing, _ changes: inout Changes) {
        for contact in list.contacts where put(contact) { changes.changed.append(contact) }
        latestChange = max(latestChange, list.latestChange)
    }
}
