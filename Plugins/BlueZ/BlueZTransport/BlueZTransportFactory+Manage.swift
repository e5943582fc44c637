// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshLoop
public import MeshTransportAPI

extension BlueZTransportFactory: TransportScanning {
    /// On the first adapter that is powered on.
    public func scan() async throws -> AsyncThrowingStream<ScanResult, any Error> {
        try await service.scan(.firstPowered)
    }
}

extension BlueZTransportFactory: TransportPairing {
    public func pair(_ settings: TransportSettings) async throws -> PairingReport {
        let bluez = try read(settings)
        let central = BlueZCentral(service, bluez, log: settings.environment.log)
        let transport = bluez.transport
        let request = GATTConnectRequest(
            target: transport.target, passkey: transport.passkey, service: transport.profile.service)
        return try await service.pair(central.order(request), transport)
    }

    public func unpair(_ settings: TransportSettings) async throws -> Bool {
        let bluez = try read(settings)
        return try await service.unpair(bluez.transport.target, AdapterChoice(bluez.adapter))
    }
}

extension BlueZTransportFactory: TransportExamining {
    public func examine(_ devices: [TransportSettings]) async -> [Finding] {
        var readable: [(name: String, settings: BlueZSettings)] = []
        for device in devices {
            if let settings = BlueZSettings.read(device.options).settings { readable.append((device.device, settings)) }
        }
        return await service.examine(readable)
    }
}

extension BlueZTransportFactory: TransportClosing {
    public func close() async {
        await service.close()
    }
}
