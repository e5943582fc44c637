// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
public import MeshLoop
public import MeshTransportAPI

/// Makes links to Bluetooth LE devices over controllers that this program owns: the module `hci`.
public struct HCITransportFactory: TransportFactory {
    private let loop: EventLoop
    private let controllers: HCIControllers

    /// All its transports run on `loop`; those that name the same controller share it.
    public init(loop: EventLoop, log: LogSink) {
        self.loop = loop
        controllers = HCIControllers(loop: loop, log: log)
    }

    public var descriptor: TransportDescriptor {
        TransportDescriptor(
            name: "hci", version: "1.0.0", vendor: "meshhost", license: "Apache-2.0",
            capabilities: [.adapter, .ownDeadlines], options: HCISettings.options)
    }

    public func validate(_ options: OptionValues) -> [OptionIssue] {
        HCISettings.read(options).issues
    }

    public func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport {
        let (hci, issues) = HCISettings.read(settings.options)
        guard let hci else {
            throw MeshError(
                .configurationInvalid, issues.map(\.message).joined(separator: "; "),
                context: .init(device: settings.device))
        }
        return BLETransport(
            loop: loop,
            central: HCICentral(
                controllers: controllers, port: hci.controller, bondDirectory: hci.bondDirectory, options: hci.link),
            settings: hci.transport,
            environment: settings.environment)
    }
}

extension HCITransportFactory: TransportClosing {
    public func close() async {
        await controllers.close()
    }
}
