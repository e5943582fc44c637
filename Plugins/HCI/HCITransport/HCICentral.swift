// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshLoop

/// One controller of our own, for ``BLETransport``.
struct HCICentral: GATTCentral {
    let controllers: HCIControllers
    let port: HCIPort
    /// Where bonds are kept; empty for nowhere.
    let bondDirectory: String
    var capture: CaptureSettings?
    var options = HCILinkOptions()

    var adapterName: String {
        get async { "\(port)" }
    }

    func observeState(_ observer: @escaping @Sendable (BluetoothState) -> Void) async -> any GATTObservation {
        let controller = await controllers.controller(at: port, bonds: bondDirectory, capture: capture)
        let serial = await controller.observe(observer)
        return LoopObservation(on: controller.loop) { controller.assumeIsolated { $0.endObservation(serial) } }
    }

    /// Nobody else makes links on a controller that this program owns.
    func adopt(_ request: GATTConnectRequest) async throws(GATTError) -> (any GATTLink)? { nil }

    func connect(_ request: GATTConnectRequest) async throws(GATTError) -> any GATTLink {
        try await controllers.controller(at: port, bonds: bondDirectory, capture: capture).connect(request, options)
    }

    func removeBond(_ target: BLETarget) async throws(GATTError) {
        try await controllers.controller(at: port, bonds: bondDirectory, capture: capture).removeBond(target)
    }

    func lastSighting(of target: BLETarget) async -> GATTPeer? {
        await controllers.controller(at: port, bonds: bondDirectory).lastSighting(of: target)
    }
}
