// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
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

    /// Opens nothing. Bonds are kept in the folder of whoever asked first; an empty one keeps none. It is recorded as the first
    /// wants it who wants it recorded.
    func controller(at port: HCIPort, bonds directory: String, capture: CaptureSettings? = nil) -> HCIController {
        if let controller = controllers[port] {
            if let capture { controller.assumeIsolated { $0.record(to: capture) } }
            return controller
        }
        let file = StateFile(directory: directory, name: "hci-\(port.fileName).json")
        let controller = HCIController(
            loop: loop, port: port, file: directory.isEmpty ? nil : file, capture: capture, log: log,
            deadlines: deadlines)
        controllers[port] = controller
        return controller
    }

    var all: [HCIController] { Array(controllers.values) }

    /// What a controller is. One that is used is not disturbed; another is opened for the moment, but no adapter is taken
    /// from others for that.
    func report(on port: HCIPort) async throws(MeshError) -> ControllerReport {
        if let controller = controllers[port], await controller.isWanted {
            return ControllerReport(port: port, controller: try await controller.describe(), isInUse: true)
        }
        let controller = HCIController(loop: loop, port: port, file: nil, takesFromOthers: false, log: log)
        let result: Result<ControllerDescriptor, MeshError>
        do throws(MeshError) {
            result = .success(try await controller.describe())
        } catch {
            result = .failure(error)
        }
        await controller.close()
        return ControllerReport(port: port, controller: try result.get(), isInUse: false)
    }

    /// Gives all controllers back.
    func close() async {
        let closing = controllers.values
        controllers = [:]
        // At the same time: an adapter may take seconds until it is the system's again.
        await withTaskGroup(of: Void.self) { group in
            for controller in closing {
                group.addTask(executorPreference: loop.taskExecutor) { await controller.close() }
            }
        }
    }
}
