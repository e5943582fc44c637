// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
public import MeshTransportAPI

/// Makes links to simulated radios: the module `mock`, to try the host without hardware.
public struct MockTransportFactory: TransportScanning {
    private let loop: EventLoop
    private let shelf = SimulatedRadioShelf()

    /// All its transports run on `loop`.
    public init(loop: EventLoop) {
        self.loop = loop
    }

    public var descriptor: TransportDescriptor {
        TransportDescriptor(
            name: "mock", version: "1.0.0", vendor: "meshhost", license: "Apache-2.0",
            capabilities: [.scanning, .pipelinedReads], options: SimulatedRadioSettings.options)
    }

    public func validate(_ options: OptionValues) -> [OptionIssue] {
        SimulatedRadioSettings.issues(options)
    }

    public func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport {
        let issues = validate(settings.options)
        guard issues.isEmpty else {
            throw MeshError(
                .configurationInvalid, issues.map(\.message).joined(separator: "; "),
                context: .init(device: settings.device))
        }
        return SimulatedRadioTransport(
            loop: loop, unit: shelf.unit(settings.device, SimulatedRadioSettings(settings.options)),
            environment: settings.environment)
    }

    /// Two devices that do not exist, once each, and then silence until the consumer stops.
    public func scan() async throws -> AsyncThrowingStream<ScanResult, any Error> {
        let (stream, continuation) = AsyncThrowingStream.makeStream(
            of: ScanResult.self, bufferingPolicy: .bufferingOldest(2))
        continuation.yield(ScanResult(address: "00:00:5E:00:53:01", name: "MeshCore-Simulated", rssi: -61))
        continuation.yield(ScanResult(address: "00:00:5E:00:53:02", name: "MeshCore-Lighthouse", rssi: -94))
        return stream
    }
}
