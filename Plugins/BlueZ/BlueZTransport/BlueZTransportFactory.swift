// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
public import MeshTransportAPI

/// Makes links to Bluetooth LE devices through bluetoothd: the module `bluez`.
public struct BlueZTransportFactory: TransportFactory {
    private let loop: EventLoop
    private let log: LogSink

    /// All its transports run on `loop`, over one connection to the system bus.
    public init(loop: EventLoop, log: LogSink) {
        self.loop = loop
        self.log = log
    }

    public var descriptor: TransportDescriptor {
        TransportDescriptor(
            name: "bluez", version: "1.0.0", vendor: "meshhost", license: "Apache-2.0",
            capabilities: [.pairing], options: BlueZSettings.options)
    }

    public func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport {
        throw MeshError(.notSupported, "the module bluez is being built")
    }
}
