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
    var options = HCILinkOptions()

    var adapterName: String {
        get async { "\(port)" }
    }

    func observeState(_ observer: @escaping @Sendable (BluetoothState) -> Void) async -> any GATTObservation {
        let controller = await controllers.controller(at: port, bonds: bondDirectory)
        return HCIObservation(controller, await controller.observe(observer))
    }

    /// Nobody else makes links on a controller that this program owns.
    func adopt(_ request: GATTConnectRequest) async throws(GATTError) -> (any GATTLink)? { nil }

    func connect(_ request: GATTConnectRequest) async throws(GATTError) -> any GATTLink {
        try await controllers.controller(at: port, bonds: bondDirectory).connect(request, options)
    }

    func removeBond(_ target: BLETarget) async throws(GATTError) {
        try await controllers.controller(at: port, bonds: bondDirectory).removeBond(target)
    }
}

/// Ends an observation when it is dropped.
final class HCIObservation: GATTObservation {
    private let controller: HCIController
    private let serial: UInt64

    init(_ controller: HCIController, _ serial: UInt64) {
        self.controller = controller
        self.serial = serial
    }

    deinit {
        // Later: it may be dropped by the very handler that is being called.
        controller.loop.perform { [controller, serial] in controller.assumeIsolated { $0.endObservation(serial) } }
    }
}
