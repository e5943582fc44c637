// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI
internal import MeshWire

/// The device's attributes.
extension HCILink {
    /// How long keys may take to be stored.
    private static let storeTime = Duration.seconds(2)

    /// Carries out one procedure. When the caller is cancelled the link ends, and the procedure with it: a request that was
    /// sent cannot be taken back, and no other may follow it (Core Specification 5.4, Vol 3 Part F §3.3.3).
    func request(_ procedure: GATTProcedure, _ operation: HCIOperation) async throws(GATTError) -> GATTResult {
        switch try await attempt(procedure, operation) {
        case .success(let value): return value
        case .failure(let failure): throw error(failure, operation)
        }
    }

    /// The same, with the failure as the device gave it.
    func attempt(
        _ procedure: GATTProcedure, _ operation: HCIOperation
    ) async throws(GATTError) -> Result<GATTResult, GATTFailure> {
        try requireUp(operation)
        if Task.isCancelled { throw .cancelled(operation, peerName) }
        let number = beginWait()
        let result = await withTaskCancellationHandler {
            await ask(procedure)
        } onCancel: { [loop] in
            loop.perform { self.assumeIsolated { $0.abandon(number) } }
        }
        waits.remove(number)
        if case .failure = result, Task.isCancelled {
            throw operation == .write ? .unacknowledged(peerName) : .cancelled(operation, peerName)
        }
        return result
    }

    /// The same for nobody who could be cancelled: its own deadline ends it.
    func ask(_ procedure: GATTProcedure) async -> Result<GATTResult, GATTFailure> {
        await withCheckedContinuation { (waiter: AttributeWaiter) in
            self.perform(self.machine.procedureRequested(procedure, waiter: waiter, now: self.loop.now))
        }
    }

    private func error(_ failure: GATTFailure, _ operation: HCIOperation) -> GATTError {
        if case .bearerEnded = failure { return end ?? .linkClosed(operation, peerName) }
        if case .refused(let code, _) = failure, cache.refused(code) == .forgetAndEnd {
            follow(.forgetAndEnd)
            return .handlesMoved(operation, peerName)
        }
        if case .timedOut = failure, operation == .write { return .unacknowledged(peerName) }
        return GATTError(failure, operation, peerName)
    }

    func discoverServices(_ uuids: [BluetoothUUID]) async throws(GATTError) -> [GATTService] {
        var found: [GATTService] = []
        for uuid in uuids {
            for service in try await discoverService(uuid) {
                let id = "\(service.range.first)-\(service.range.last)"
                services[id] = service
                found.append(GATTService(uuid: service.uuid, id: id))
            }
        }
        return found
    }

    func discoverCharacteristics(of service: GATTService) async throws(GATTError) -> [GATTCharacteristic] {
        guard let range = services[service.id]?.range else { throw unknown("service \(service.uuid)", .discover) }
        let list = try await discoverCharacteristics(in: range)
        var found: [GATTCharacteristic] = []
        for (index, entry) in list.enumerated() {
            // Up to the next declaration everything belongs to this one (Vol 3 Part G §3.3).
            let last = index + 1 < list.count ? list[index + 1].declarationHandle - 1 : range.last
            let id = String(entry.valueHandle)
            characteristics[id] = (entry.valueHandle, last)
            found.append(
                GATTCharacteristic(uuid: entry.uuid, id: id, properties: .init(rawValue: entry.properties)))
        }
        return found
    }

    func startNotifications(
        of characteristic: GATTCharacteristic, _ handler: @escaping @Sendable (Data) -> Void
    ) async throws(GATTError) {
        guard let entry = characteristics[characteristic.id] else {
            throw unknown("characteristic \(characteristic.uuid)", .subscribe)
        }
        guard let configuration = try await discoverConfiguration(of: entry.value, last: entry.last) else {
            throw unknown("subscription to \(characteristic.uuid)", .subscribe)
        }
        // Before the request: the first values may come before its answer.
        notifications[entry.value] = handler
        let value: [UInt8] = characteristic.properties.contains(.notify) ? [1, 0] : [2, 0]
        do throws(GATTError) {
            _ = try await request(.write(configuration, value), .subscribe)
        } catch {
            notifications[entry.value] = nil
            throw error
        }
        // From here on the device is in use: a program that is killed must not lose the keys of its pairing.
        await controller.bondsStored(upTo: Self.storeTime)
        // Closed meanwhile: nobody is told any more.
        if isClosing { notifications[entry.value] = nil }
        cache.configurationFound(configuration, of: entry.value)
        setUpFinished()
    }

    func maximumWriteLength(of characteristic: GATTCharacteristic) throws(GATTError) -> Int {
        try requireUp(.write)
        return machine.maximumWriteLength
    }

    func write(
        _ value: Data, to characteristic: GATTCharacteristic, withResponse: Bool
    ) async throws(GATTError) {
        guard let entry = characteristics[characteristic.id] else {
            throw unknown("characteristic \(characteristic.uuid)", .write)
        }
        if withResponse {
            _ = try await request(.write(entry.value, Array(value)), .write)
            return
        }
        try requireUp(.write)
        guard let frame = machine.writeCommand(entry.value, Array(value)) else {
            throw GATTError(.valueTooLong, .write, peerName)
        }
        // Returns when it is queued: a caller that writes on keeps the controller's buffers full.
        while offer(frame, isValue: true) == .full {
            await waitForRoom()
            if Task.isCancelled { throw .cancelled(.write, peerName) }
            try requireUp(.write)
        }
    }

    /// Until packets have gone, the link has ended, or the task is cancelled.
    private func waitForRoom() async {
        nextRoomSerial += 1
        let serial = nextRoomSerial
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled { return continuation.resume() }
                self.roomWaiters.append((serial, continuation))
            }
        } onCancel: { [loop] in
            loop.perform { self.assumeIsolated { $0.stopWaitingForRoom(serial) } }
        }
    }

    private func stopWaitingForRoom(_ serial: UInt64) {
        guard let index = roomWaiters.firstIndex(where: { $0.serial == serial }) else { return }
        roomWaiters.remove(at: index).continuation.resume()
    }

    private func unknown(_ thing: String, _ operation: HCIOperation) -> GATTError {
        GATTError(.notSupported, .characteristicNotFound, "\(peerName) has no \(thing)", operation, peerName)
    }
}
