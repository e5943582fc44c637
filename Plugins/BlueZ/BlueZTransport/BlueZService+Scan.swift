// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshLoop
internal import MeshTransportAPI
internal import MeshWire

/// Somebody who wants to hear of all devices.
struct Scanner {
    var adapter: String
    var wish: UInt64
    var filter = SightingFilter()
    var continuation: AsyncThrowingStream<ScanResult, any Error>.Continuation
}

/// Looking for devices: `meshhost scan`.
extension BlueZService {
    /// Sightings that a slow consumer has not taken yet; older ones are dropped, as newer ones say more.
    private static let bufferedSightings = 256
    /// Then a search that has not begun is not waited for any more: others' links may go before it.
    private static let startTime = Duration.seconds(20)

    /// Devices as they are heard, and those that are connected and so cannot be heard, until the consumer stops.
    func scan(_ choice: AdapterChoice) async throws(MeshError) -> AsyncThrowingStream<ScanResult, any Error> {
        await retain()
        let adapter: String
        do throws(GATTError) {
            adapter = try usableAdapter(choice)
        } catch {
            await releaseAndClose()
            throw error.error.adding(operation: "scan")
        }
        let (stream, continuation) = AsyncThrowingStream.makeStream(
            of: ScanResult.self, bufferingPolicy: .bufferingNewest(Self.bufferedSightings))
        let serial = nextSerial()
        let wish = wish(on: adapter, DiscoveryStateMachine.Filter(services: [], reportsDuplicates: true))
        do throws(GATTError) {
            try await searchBegins(on: adapter, choice)
        } catch {
            endWish(wish, on: adapter)
            await releaseAndClose()
            throw error.error.adding(operation: "scan")
        }
        scanners[serial] = Scanner(adapter: adapter, wish: wish, continuation: continuation)
        continuation.onTermination = { [loop] _ in
            loop.perform { self.assumeIsolated { $0.endScan(serial) } }
        }
        for device in objects.devices.values where device.adapter == adapter {
            if device.isConnected || device.rssi != nil { tellScanners(device) }
        }
        return stream
    }

    /// Waits until the search is on: one that cannot begin must not pass for one that has heard nothing.
    private func searchBegins(on adapter: String, _ choice: AdapterChoice) async throws(GATTError) {
        let failures = searches[adapter]?.failures ?? 0
        if searches[adapter]?.isStuck != true {
            _ = await wait(upTo: Self.startTime) {
                $0.searches[adapter].map { $0.machine.isOn || $0.failures != failures } ?? true
                    || $0.state(choice) != .poweredOn && !$0.isPowerCycling(choice)
            }
        }
        if Task.isCancelled { throw .cancelled(.discover, peer: "") }
        _ = try usableAdapter(choice)
        guard let search = searches[adapter], search.isStuck else { return }
        throw GATTError(
            meaning(search.lastFailure ?? .other, on: adapter), during: .discover, peer: "",
            adapter: adapterName(choice),
            cause: nil)
    }

    private func endScan(_ serial: UInt64) {
        guard let scanner = scanners.removeValue(forKey: serial) else { return }
        endWish(scanner.wish, on: scanner.adapter)
        release()
    }

    func tellScanners(_ device: BlueZDevice) {
        if scanners.isEmpty { return }
        let result = ScanResult(device)
        for (serial, scanner) in scanners where scanner.adapter == device.adapter {
            if scanners[serial]?.filter.isNews(result, now: loop.now) == true { scanner.continuation.yield(result) }
        }
    }
}

extension ScanResult {
    init(_ device: BlueZDevice) {
        self.init(
            address: (device.address ?? BLEAddress(bytesOf: device.path)).text, name: device.name, rssi: device.rssi,
            advertisement: AdvertisingData(device).encoded())
    }
}

extension AdvertisingData {
    /// What bluetoothd has kept of a device's advertisements. Their flags, and the order of what they held, it has not.
    init(_ device: BlueZDevice) {
        self.init()
        services = device.uuids
        if !device.name.isEmpty { localName = LocalName(device.name) }
        manufacturerData = device.manufacturerData.sorted { $0.key < $1.key }.map {
            ManufacturerData(company: $0.key, bytes: $0.value)
        }
        serviceData = device.serviceData.sorted { ($0.key.high, $0.key.low) < ($1.key.high, $1.key.low) }.map {
            ServiceData(service: $0.key, bytes: $0.value)
        }
    }
}
