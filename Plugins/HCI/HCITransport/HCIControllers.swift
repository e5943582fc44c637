// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI

/// The controllers of a module: one for each port, whoever asks for it.
actor HCIControllers {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let log: LogSink
    private var controllers: [HCIPort: HCIController] = [:]

    init(loop: EventLoop, log: LogSink) {
        self.loop = loop
        self.log = log
    }

    /// Opens nothing.
    func controller(at port: HCIPort) -> HCIController {
        if let controller = controllers[port] { return controller }
        let controller = HCIController(loop: loop, port: port, log: log)
        controllers[port] = controller
        return controller
    }

    /// Gives all controllers back.
    func close() async {
        for controller in controllers.values { await controller.close() }
        controllers = [:]
    }
}
