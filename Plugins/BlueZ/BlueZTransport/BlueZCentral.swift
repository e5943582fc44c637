// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshLoop
internal import MeshTransportAPI

/// One adapter of bluetoothd, as one device's options want it used.
struct BlueZCentral: GATTCentral {
    let service: BlueZService
    let choice: AdapterChoice
    let powersOn: Bool
    let isDefaultAgent: Bool
    let target: BLETarget
    let passkey: BLEPasskey?
    let takesOver: Bool
    let link: BlueZLink.Settings

    init(_ service: BlueZService, _ settings: BlueZSettings, log: LogSink) {
        self.service = service
        choice = AdapterChoice(settings.adapter)
        powersOn = settings.powersOn
        isDefaultAgent = settings.isDefaultAgent
        target = settings.transport.target
        passkey = settings.transport.passkey
        takesOver = settings.takesOver
        link = BlueZLink.Settings(acquiresNotifications: settings.notifications == .acquire, log: log)
    }

    var adapterName: String {
        get async { await service.adapterName(choice) }
    }

    func observeState(_ observer: @escaping @Sendable (BluetoothState) -> Void) async -> any GATTObservation {
        await prepare()
        let serial = await service.observe(
            target, passkey, choice, powersOn: powersOn, isDefaultAgent: isDefaultAgent, observer)
        return LoopObservation(on: service.loop) { [service] in
            service.assumeIsolated { $0.endObservation(serial) }
        }
    }

    func adopt(_ request: GATTConnectRequest) async throws(GATTError) -> (any GATTLink)? {
        await prepare()
        return try await service.adopt(order(request))
    }

    func connect(_ request: GATTConnectRequest) async throws(GATTError) -> any GATTLink {
        await prepare()
        return try await service.connect(order(request))
    }

    func removeBond(_ target: BLETarget) async throws(GATTError) {
        try await service.removeBond(target, choice)
    }

    func lastSighting(of target: BLETarget) async -> GATTPeer? { await service.peer(target, choice) }

    func order(_ request: GATTConnectRequest) -> BlueZService.ConnectOrder {
        BlueZService.ConnectOrder(request: request, choice: choice, takesOver: takesOver, settings: link)
    }

    private func prepare() async {
        if powersOn { await service.allowPower(choice) }
    }
}
