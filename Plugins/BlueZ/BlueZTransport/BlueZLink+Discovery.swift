// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshDBus
internal import MeshLoop
internal import MeshTransportAPI
internal import MeshWire

/// Services and characteristics: bluetoothd looks for them by itself; here they are waited for.
extension BlueZLink {
    /// Objects of services that the device is not known to have are waited for this long once it says that all are there (R10).
    private static let lateTime = Duration.seconds(1)
    /// No new object for this long: the late ones have all come.
    private static let quietTime = Duration.milliseconds(200)
    /// Longer than any caller waits.
    private static let longTime = Duration.seconds(600)
    /// A device whose services do not become known this often is forgotten (R11), unless keys would be lost.
    private static let unresolvedLimit = 3

    func discoverServices(_ uuids: [BluetoothUUID]) async throws(GATTError) -> [GATTService] {
        try requireUp(.connect)
        let (path, serial) = (path, serial)
        presumed = await settings.acquiresNotifications ? nil : service.presumable(uuids, of: path)
        if presumed == nil { try await waitUntilResolved() }
        if await !service.hasServices(uuids, of: path) {
            let isClaimed = await service.claims(uuids, of: path)
            _ = await service.wait(upTo: isClaimed ? Self.longTime : Self.lateTime) {
                $0.links[path]?.serial != serial || $0.hasServices(uuids, of: path)
            }
            try await requireResolving()
            if await !service.hasServices(uuids, of: path) { await service.refresh() }
            try await waitUntilQuiet()
        }
        if presumed == nil { await service.resolved(path) }
        let known = await service.objects.services(of: path)
        return uuids.flatMap { uuid in known.filter { $0.uuid == uuid } }.map {
            GATTService(uuid: $0.uuid, id: $0.path)
        }
    }

    func discoverCharacteristics(of service: GATTService) async throws(GATTError) -> [GATTCharacteristic] {
        try requireUp(.connect)
        let (path, serial) = (path, serial)
        if await self.service.objects.characteristics(of: service.id).isEmpty {
            _ = await self.service.wait(upTo: Self.lateTime) {
                $0.links[path]?.serial != serial || !$0.objects.characteristics(of: service.id).isEmpty
            }
            try await requireResolving()
        }
        // They come one by one.
        if presumed == nil, await self.service.gattChanges[path, default: 0] != settledChanges {
            try await waitUntilQuiet()
        }
        let characteristics = await self.service.objects.characteristics(of: service.id).map {
            GATTCharacteristic(uuid: $0.uuid, id: $0.path, properties: $0.properties)
        }
        for characteristic in characteristics where characteristic.properties.contains(.write) && isUp {
            if presumed?.writeLengths[characteristic.id] != nil { continue }
            askForMTU(of: characteristic.id)
        }
        return characteristics
    }

    /// Waits until bluetoothd has looked through the device.
    func waitUntilResolved() async throws(GATTError) {
        let (path, serial) = (path, serial)
        _ = await service.wait(upTo: Self.longTime) {
            $0.links[path]?.serial != serial || $0.objects.devices[path]?.areServicesResolved == true
        }
        try await requireResolving()
    }

    /// The device has not what it had, or not yet: what waits for nothing fails then, and is tried again.
    func presumeNothing() async throws(GATTError) {
        presumed = nil
        try await waitUntilResolved()
    }

    /// The device has what it had. Whether it still takes writes as long as before is asked now, for the next link.
    func presumptionHolds() {
        guard let known = presumed else { return }
        presumed = nil
        for (characteristic, length) in known.writeLengths where isUp {
            _ = Task(executorPreference: loop.taskExecutor) { await self.compare(length, characteristic) }
        }
    }

    private func compare(_ presumedLength: Int, _ characteristic: String) async {
        guard let length = try? await maximumWriteLength(of: characteristic), length < presumedLength, isUp else {
            return
        }
        await service.endLater(path, after: .zero)
    }

    private func waitUntilQuiet() async throws(GATTError) {
        let (path, serial) = (path, serial)
        var isQuiet = false
        while !isQuiet {
            let count = await service.gattChanges[path]
            isQuiet = await !service.wait(upTo: Self.quietTime) {
                $0.links[path]?.serial != serial || $0.gattChanges[path] != count
            }
            try await requireResolving()
            settledChanges = count ?? 0
        }
    }

    private func requireResolving() async throws(GATTError) {
        try requireUp(.connect)
        guard Task.isCancelled else { return }
        await service.notResolved(path)
        throw .cancelled(.connect, peer: peerName)
    }

    /// Part of ``close()``.
    func forgetIfUnresolvable() async {
        guard let count = await service.unresolved[path], count >= Self.unresolvedLimit else { return }
        await service.resolved(path)
        guard await service.objects.devices[path]?.isBonded == false else { return }
        settings.log(.notice, "the device is forgotten, as its services do not become known", [("peer", peerName)])
        try? await service.remove(path, peer: peerName, .firstPowered)
    }
}

extension BlueZService {
    fileprivate func hasServices(_ uuids: [BluetoothUUID], of path: String) -> Bool {
        let known = objects.services(of: path)
        return uuids.allSatisfy { uuid in known.contains { $0.uuid == uuid } }
    }

    /// Whether the device says that it has these, though there are no objects of them.
    fileprivate func claims(_ uuids: [BluetoothUUID], of path: String) -> Bool {
        let claimed = objects.devices[path]?.uuids ?? []
        return uuids.allSatisfy { claimed.contains($0) }
    }

    fileprivate func resolved(_ path: String) {
        unresolved[path] = nil
        if knownServices[path]?.hold(of: path, in: objects) != true {
            knownServices[path] = KnownServices(of: path, in: objects)
        }
    }

    /// What a link may go by until bluetoothd has looked through the device: what there was, for a device whose objects
    /// bluetoothd keeps.
    fileprivate func presumable(_ uuids: [BluetoothUUID], of path: String) -> KnownServices? {
        guard let device = objects.devices[path], device.isBonded, !device.areServicesResolved,
            let known = knownServices[path], !known.writeLengths.isEmpty, hasServices(uuids, of: path),
            known.hold(of: path, in: objects)
        else { return nil }
        return known
    }

    /// The longest write to a characteristic was asked for.
    func know(_ writeLength: Int, _ characteristic: String, of path: String) {
        knownServices[path]?.writeLengths[characteristic] = writeLength
    }

    /// A device was told of. Once bluetoothd has looked through it, what a link went by is known to be so.
    func presumptionMayHold(_ path: String) {
        guard let link = links[path], objects.devices[path]?.areServicesResolved == true else { return }
        link.assumeIsolated { $0.presumptionHolds() }
    }

    /// Objects below a device came, went or changed. A link that goes by what they were is ended, and the next one waits.
    func knownMayHaveChanged(_ path: String) {
        guard let link = links[path], let known = link.assumeIsolated({ $0.presumed }),
            !known.hold(of: path, in: objects)
        else { return }
        knownServices[path] = nil
        link.assumeIsolated { $0.presumed = nil }
        log(.info, "the services of the device have changed", [("device", link.peerName)])
        endLater(path, after: .zero)
    }

    fileprivate func notResolved(_ path: String) {
        if objects.devices[path]?.areServicesResolved == false { unresolved[path, default: 0] += 1 }
    }
}
