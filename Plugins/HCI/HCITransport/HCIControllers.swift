// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshRuntime
internal import MeshTransportAPI

/// The controllers of a module: one for each port, whoever asks for it.
actor HCIControllers {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let log: LogSink
    private let deadlines: HCIDeadlines
    private var controllers: [HCIPort: HCIController] = [:]

    init(loop: EventLoop, log: LogSink, deadlines: HCIDeadlines = HCIDeadlines()) {
        self.loop = loop
        self.log = log
        self.deadlines = deadlines
    }

    /// Opens nothing. Bonds are kept in the folder of whoever asked first; an empty one keeps none.
    func controller(at port: HCIPort, bonds directory: String) -> HCIController {
        if let controller = controllers[port] { return controller }
        let file = StateFile(directory: directory, name: "hci-\(port.fileName).json")
        let controller = HCIController(
            loop: loop, port: port, file: directory.isEmpty ? nil : file, log: log, deadlines: deadlines)
        controllers[port] = controller
        return controller
    }

    /// Gives all controllers back.
    func close() async {
        for controller in controllers.values { await controller.close() }
        controllers = [:]
    }
}
