// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// Pairing by order of a person: `meshhost pair` and `unpair`.
extension HCIController {
    /// Pairs with a device, over the link that it has or one of its own.
    func pair(
        _ request: GATTConnectRequest, _ settings: BLETransportSettings, _ options: HCILinkOptions
    ) async throws(MeshError) -> PairingReport {
        let target = request.target
        do throws(GATTError) {
            _ = try await usable(.pair, target.description)
        } catch {
            throw error.error
        }
        if let peer = bondedPeers(target).first {
            return PairingReport(
                address: BLEAddress(peer).text, name: name(of: peer, target), wasBonded: true, usedPasskey: false)
        }
        if let link = link(to: target) { return try await pair(over: link, settings, target) }
        let link: HCILink
        do throws(MeshError) {
            link = try await loop.within(
                settings.connectionTimeout,
                "\(target) was not reached through \(port) within \(settings.connectionTimeout.optionText); is it on, in "
                    + "range, and not connected to another host?"
            ) { () async throws(GATTError) in try await self.connect(request, options, unlessLinked: true) }
        } catch {
            // The device's own attempt was faster.
            guard let link = self.link(to: target) else { throw error }
            return try await pair(over: link, settings, target)
        }
        do throws(MeshError) {
            let report = try await pair(over: link, settings, target)
            await link.close()
            return report
        } catch {
            await link.close()
            throw error
        }
    }

    private func pair(
        over link: HCILink, _ settings: BLETransportSettings, _ target: BLETarget
    ) async throws(MeshError) -> PairingReport {
        let outcome = try await loop.within(
            settings.pairingTimeout, "the pairing took longer than \(settings.pairingTimeout.optionText)"
        ) { () async throws(GATTError) in try await link.pair() }
        try await requireStoredBonds("paired with \(target)")
        let peer = await link.identity
        return PairingReport(
            address: BLEAddress(peer).text, name: name(of: peer, target), wasBonded: outcome.wasBonded,
            usedPasskey: outcome.usedPasskey)
    }

    /// Forgets a device's keys, and ends the link to it. Returns whether there were any keys. Bonds are kept by address, so
    /// a device that is known by its name alone, and was not met since the start, is looked for.
    func unpair(_ target: BLETarget, _ settings: BLETransportSettings) async throws(MeshError) -> Bool {
        let own: DeviceAddress
        do throws(GATTError) {
            own = try await usable(.pair, target.description).ownAddress
        } catch {
            throw error.error
        }
        if let name = target.name, found[name] == nil, bonded(name).isEmpty, !book.peers(of: own).isEmpty {
            let heard = try await look(for: target, within: settings.connectionTimeout)
            found[name] = identity(of: heard)
        }
        let wasBonded: Bool
        do throws(GATTError) {
            wasBonded = try await removeBond(target)
        } catch {
            throw error.error
        }
        if wasBonded { try await requireStoredBonds("forgot \(target)") }
        return wasBonded
    }

    /// Whoever is told that something was done relies on it after the next start.
    private func requireStoredBonds(_ what: String) async throws(MeshError) {
        await saver?.value
        guard let bondTrouble else { return }
        throw MeshError(
            .storageFailed, "\(what), but that could not be stored: \(bondTrouble); see the option bond_dir")
    }

    private func look(for target: BLETarget, within limit: Duration) async throws(MeshError) -> DeviceAddress {
        try await loop.within(
            limit,
            "\(target) was not heard within \(limit.optionText), and keys are kept by address; name it by its address"
        ) { () async throws(GATTError) in
            guard let address = await self.seek(target) else { throw .cancelled(.pair, target.description) }
            return address
        }
    }

    // MARK: Who is meant

    /// The link to a device, unless it is ending.
    func link(to target: BLETarget) -> HCILink? {
        links.values.first { link in
            isMeant(identity(of: link.connection.peer), target)
                && link.assumeIsolated { $0.end == nil && !$0.isClosing }
        }
    }

    /// Whether `target` means this device: by its name, the one whose keys it stands with, or was last found by it.
    func isMeant(_ peer: DeviceAddress, _ target: BLETarget) -> Bool {
        switch target {
        case .address(let address): return address.matches(BLEAddress(peer))
        case .name(let name):
            let bonded = bonded(name)
            return bonded.isEmpty ? found[name] == peer : bonded.contains(peer)
        }
    }

    /// Whether a device that is heard is the one that `target` means. Anybody can have a name; with keys for the one that has
    /// had it, nobody else is meant.
    func isMeant(_ sighting: DeviceSightings.Sighting, _ target: BLETarget) -> Bool {
        switch target {
        case .address(let address): return address.matches(BLEAddress(identity(of: sighting.address)))
        case .name(let name):
            guard sighting.name == name else { return false }
            let bonded = bonded(name)
            if bonded.isEmpty || bonded.contains(identity(of: sighting.address)) { return true }
            tellOfNamesake(sighting.address, name)
            return false
        }
    }

    private func bonded(_ name: String) -> [DeviceAddress] {
        descriptor.map { book.peers(of: $0.ownAddress, named: name) } ?? []
    }

    /// Once for each name: it may be a radio in the place of another.
    private func tellOfNamesake(_ address: DeviceAddress, _ name: String) {
        guard namesakes[name] == nil else { return }
        namesakes[name] = address
        log(
            .notice, "another device has the name of one that is paired; `meshhost unpair` forgets the one that was",
            [("controller", "\(port)"), ("name", name), ("address", "\(address)")])
    }

    /// The bonded devices that `target` means.
    func bondedPeers(_ target: BLETarget) -> [DeviceAddress] {
        descriptor.map { bondedPeers(target, of: $0.ownAddress) } ?? []
    }

    func bondedPeers(_ target: BLETarget, of own: DeviceAddress) -> [DeviceAddress] {
        book.peers(of: own).filter { isMeant($0, target) }
    }

    private func name(of peer: DeviceAddress, _ target: BLETarget) -> String {
        sightings[peer]?.name ?? target.name ?? ""
    }
}
