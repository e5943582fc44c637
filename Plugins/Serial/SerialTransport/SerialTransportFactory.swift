// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
public import MeshTransportAPI

/// Makes links to radios at serial ports: the module `serial`.
public struct SerialTransportFactory: TransportFactory, TransportClosing {
    let loop: EventLoop
    let watcher: SerialPortWatcher

    /// All its transports run on `loop`.
    public init(loop: EventLoop) {
        self.init(loop: loop, watcher: SerialPortWatcher(loop: loop))
    }

    init(loop: EventLoop, watcher: SerialPortWatcher) {
        self.loop = loop
        self.watcher = watcher
    }

    public var descriptor: TransportDescriptor {
        TransportDescriptor(
            name: "serial", version: "1.0.0", vendor: "meshhost", license: "Apache-2.0",
            capabilities: [.scanning, .pipelinedReads], options: SerialSettings.options)
    }

    public func validate(_ options: OptionValues) -> [OptionIssue] {
        SerialSettings.read(options).issues
    }

    /// Its port, as it is written: one program at a time has a port. Where a path leads to is not looked at.
    public func identity(_ options: OptionValues) -> String? {
        SerialSettings.read(options).settings?.choice.description
    }

    public func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport {
        let (serial, issues) = SerialSettings.read(settings.options)
        guard let serial else {
            throw MeshError(
                .configurationInvalid, issues.map(\.message).joined(separator: "; "),
                context: .init(device: settings.device))
        }
        return SerialTransport(loop: loop, settings: serial, watcher: watcher, environment: settings.environment)
    }

    public func close() async {
        let watcher = watcher
        await LoopActor(loop).run { _ in watcher.close() }
    }
}
