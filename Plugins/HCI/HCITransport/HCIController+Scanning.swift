// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI
internal import MeshWire

/// Hearing devices: for those who connect to one, and for those who want to hear of all. The controller scans as long as any
/// of them is there, and not while it begins a link, which many controllers cannot do at the same time.
extension HCIController {
    /// Waits for a device to be heard.
    struct Seeker {
        var target: BLETarget
        /// A link that somebody else makes ends the wait: such a device is heard by nobody.
        var endsWithLink = false
        var continuation: CheckedContinuation<DeviceAddress?, Never>
    }

    /// Wants to hear of all devices.
    struct Scanner {
        var filter = SightingFilter()
        var continuation: AsyncThrowingStream<ScanResult, any Error>.Continuation
    }

    // MARK: All devices

    /// From here on the continuation gets devices as they are heard, and those that are connected and so cannot be. It goes on
    /// when the controller was lost and is back. Returns a number for ``endScan(_:)``.
    func beginScan(
        _ continuation: AsyncThrowingStream<ScanResult, any Error>.Continuation
    ) async throws(MeshError) -> UInt64 {
        do throws(GATTError) {
            _ = try await usable(.scan, "")
        } catch {
            throw error.error
        }
        let serial = takeSerial()
        scanners[serial] = Scanner(continuation: continuation)
        for link in links.values {
            let peer = link.connection.peer
            let name = sightings[peer]?.name ?? ""
            continuation.yield(ScanResult(address: BLEAddress(peer).text, name: name))
        }
        // An attempt may wait long for a device that is not there; it goes on by listening, together with the scan.
        interruptCreation()
        updateScan()
        return serial
    }

    func endScan(_ serial: UInt64) {
        guard scanners.removeValue(forKey: serial) != nil else { return }
        updateScan()
    }

    // MARK: One device

    /// Waits until a device is heard that can be connected to; nil when the task is cancelled, the controller is lost, or does
    /// not scan.
    func seek(_ target: BLETarget, unlessLinked: Bool = false) async -> DeviceAddress? {
        // An attempt may wait long for a device that is not there; it goes on by listening, together with this.
        interruptCreation()
        let serial = takeSerial()
        let found = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<DeviceAddress?, Never>) in
                if Task.isCancelled || self.scan == nil { return continuation.resume(returning: nil) }
                if unlessLinked, let link = self.link(to: target) {
                    return continuation.resume(returning: link.connection.peer)
                }
                // What was heard long ago may have another name by now.
                if self.scanners.isEmpty, self.seekers.isEmpty { self.sightings.removeAll() }
                self.seekers[serial] = Seeker(
                    target: target, endsWithLink: unlessLinked, continuation: continuation)
                self.updateScan()
            }
        } onCancel: { [loop] in
            loop.perform { self.assumeIsolated { $0.stopSeeking(serial) } }
        }
        updateScan()
        return found
    }

    private func stopSeeking(_ serial: UInt64) {
        seekers.removeValue(forKey: serial)?.continuation.resume(returning: nil)
    }

    /// What was last heard of the device.
    func lastSighting(of target: BLETarget) -> GATTPeer? {
        guard
            let sighting = sightings.all.filter({ isMeant($0, target) }).max(by: {
                $0.lastHeard < $1.lastHeard
            })
        else {
            return nil
        }
        return GATTPeer(
            address: BLEAddress(sighting.address), name: sighting.name ?? "", rssi: sighting.rssi.map { Int($0) },
            isBonded: bond(of: identity(of: sighting.address)) != nil)
    }

    // MARK: The controller

    func heard(_ report: AdvertisingReport) {
        guard let sighting = sightings.reportReceived(report, now: loop.now) else { return }
        if !scanners.isEmpty { tellScanners(ScanResult(sighting)) }
        guard sighting.isConnectable else { return }
        for (serial, seeker) in seekers where isMeant(sighting, seeker.target) {
            seekers[serial] = nil
            seeker.continuation.resume(returning: sighting.address)
        }
    }

    private func tellScanners(_ result: ScanResult) {
        for serial in scanners.keys where scanners[serial]?.filter.isNews(result, now: loop.now) == true {
            // Another controller's failure ends the stream of all.
            if case .terminated? = scanners[serial]?.continuation.yield(result) { endScan(serial) }
        }
    }

    /// Scans if somebody wants to hear and no link is being begun.
    func updateScan() {
        guard scan != nil else { return }
        let isWanted = !isScanPaused && !(seekers.isEmpty && scanners.isEmpty)
        perform(isWanted ? scan!.startRequested() : scan!.stopRequested())
    }

    /// Returns when the controller does not scan any more; it does not until ``resumeScan()``.
    func pauseScan() async {
        isScanPaused = true
        updateScan()
        await withCheckedContinuation { continuation in
            // The controller may be lost by now, and nothing end any more.
            if self.scan?.isActive == true { self.scanEnds.append(continuation) } else { continuation.resume() }
        }
    }

    func resumeScan() {
        isScanPaused = false
        updateScan()
    }

    func perform(_ action: ScanStateMachine.Action) {
        switch action {
        case .nothing, .began: break
        case .send(let command): send(command, .scan)
        case .ended, .failed:
            if case .failed(let status) = action {
                log(.notice, "the controller does not scan", [("controller", "\(port)"), ("status", "\(status)")])
                for seeker in seekers.values { seeker.continuation.resume(returning: nil) }
                seekers = [:]
                let error = MeshError(.adapterUnavailable, "\(port) refuses to look for devices: \(status)")
                for scanner in scanners.values { scanner.continuation.finish(throwing: error) }
                scanners = [:]
            }
            let ends = scanEnds
            scanEnds = []
            for end in ends { end.resume() }
        }
    }
}

extension BLETarget {
    /// The name, where that is what is known of the device.
    var name: String? {
        if case .name(let name) = self { name } else { nil }
    }
}

extension BLEAddress {
    init(_ address: DeviceAddress) {
        self.init(address.value, address.kind == .public ? .public : .random)
    }
}

extension ScanResult {
    init(_ sighting: DeviceSightings.Sighting) {
        var advertised = AdvertisingData()
        advertised.services = sighting.services
        if let name = sighting.name { advertised.localName = .init(name) }
        self.init(
            address: BLEAddress(sighting.address).text, name: sighting.name ?? "", rssi: sighting.rssi.map { Int($0) },
            advertisement: advertised.encoded())
    }
}
