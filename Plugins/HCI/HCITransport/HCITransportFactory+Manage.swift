// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshLoop
public import MeshTransportAPI

extension HCITransportFactory: TransportScanning {
    /// With the controllers that are in use.
    public func scan() async throws -> AsyncThrowingStream<ScanResult, any Error> {
        try await scan(around: [])
    }

    /// With the controllers of these devices, too.
    public func scan(
        around devices: [TransportSettings]
    ) async throws -> AsyncThrowingStream<ScanResult, any Error> {
        try await controllers.scan(devices.compactMap { HCISettings.read($0.options).settings })
    }
}

extension HCITransportFactory: TransportPairing {
    public func pair(_ settings: TransportSettings) async throws -> PairingReport {
        let hci = try read(settings)
        let transport = hci.transport
        let request = GATTConnectRequest(
            target: transport.target, passkey: transport.passkey, service: transport.profile.service)
        return try await controllers.controller(at: hci.controller, bonds: hci.bondDirectory, capture: hci.capture)
            .pair(
                request, transport, hci.link)
    }

    public func unpair(_ settings: TransportSettings) async throws -> Bool {
        let hci = try read(settings)
        return try await controllers.controller(at: hci.controller, bonds: hci.bondDirectory, capture: hci.capture)
            .unpair(
                hci.transport.target, hci.transport)
    }
}

extension HCITransportFactory: TransportExamining {
    public func examine(_ devices: [TransportSettings]) async -> [Finding] {
        var readable: [(name: String, settings: HCISettings)] = []
        for device in devices {
            if let settings = HCISettings.read(device.options).settings { readable.append((device.device, settings)) }
        }
        return await controllers.examine(readable)
    }
}

extension HCITransportFactory: TransportClosing {
    public func close() async {
        await controllers.close()
    }
}
