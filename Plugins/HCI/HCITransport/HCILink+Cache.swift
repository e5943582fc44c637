// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshWire

/// Attributes that are known from an earlier link, or are learnt for the next one.
extension HCILink {
    func discoverService(_ uuid: BluetoothUUID) async throws(GATTError) -> [RemoteService] {
        try requireUp(.discover)
        var lookup = cache.services(uuid)
        if case .check(let procedure) = lookup {
            cache.tagRead(try await attempt(procedure, .discover))
            try requireUp(.discover)
            lookup = cache.services(uuid)
        }
        if case .known(let services) = lookup { return services }
        guard case .services(let services) = try await request(.discoverService(uuid), .discover) else { return [] }
        cache.servicesFound(services)
        return services
    }

    func discoverCharacteristics(
        in range: ATTPacket.HandleRange
    ) async throws(GATTError) -> [RemoteCharacteristic] {
        try requireUp(.discover)
        if let known = cache.characteristics(range) { return known }
        guard case .characteristics(let found) = try await request(.discoverCharacteristics(range), .discover) else {
            return []
        }
        cache.characteristicsFound(found, in: range)
        return found
    }

    /// The CCCD of a value, whose descriptors end at `last`; nil if there is none.
    func discoverConfiguration(of value: UInt16, last: UInt16) async throws(GATTError) -> UInt16? {
        if case .known(let handle) = cache.configuration(of: value, last: last) { return handle }
        guard value < last,
            case .descriptors(let found) = try await request(.discoverDescriptors(.init(value + 1, last)), .subscribe)
        else { return nil }
        return found.first { $0.type == .clientConfiguration }?.handle
    }

    func follow(_ change: GATTCacheStateMachine.ChangeAction) {
        if change == .nothing { return }
        keep(nil as RemoteDatabase?)
        guard change == .forgetAndEnd, end == nil else { return }
        perform(machine.disconnectRequested(now: loop.now))
    }

    /// A pairing has made a bond.
    func keep(_ bond: Bond) {
        let isKept = controller.assumeIsolated { $0.adopt(bond, from: connection.peer, name: searchName) }
        self.bond = isKept ? bond : nil
    }

    /// The device notifies: the link is in use.
    func setUpFinished() {
        guard setUpRequests == nil, end == nil, !isClosing else { return }
        setUpRequests = machine.attributeRequests
        perform(machine.setUpFinished(now: loop.now))
        let first = cache.setUpFinished(isBonded: bond != nil)
        if first != .nothing { learner = Task(executorPreference: loop.taskExecutor) { await self.learn(first) } }
    }

    /// Ends with the link: whatever is asked then is answered.
    private func learn(_ first: GATTCacheStateMachine.LearnAction) async {
        var action = first
        while case .ask(let procedure) = action { action = cache.learned(await ask(procedure)) }
        if case .store(let database) = action { keep(database) }
        learner = nil
    }

    /// Keeps what is known of the device's attributes; nil forgets it.
    private func keep(_ database: RemoteDatabase?) {
        let identity = identity
        controller.assumeIsolated { $0.store(database, of: identity) }
    }
}
