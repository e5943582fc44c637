// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
internal import MeshBLE
internal import MeshDBus
public import MeshLoop
public import MeshTransportAPI

/// Makes links to Bluetooth LE devices through bluetoothd: the module `bluez`.
public struct BlueZTransportFactory: TransportFactory {
    private let loop: EventLoop
    private let log: LogSink
    let service: BlueZService

    /// All its transports run on `loop`, over one connection to the system bus.
    /// `environment` may name another bus than the system's, in `DBUS_SYSTEM_BUS_ADDRESS`. With `staysOpen` the connection
    /// to it stays from the first use until ``close()``, so that a link that comes back need not open it; without, it
    /// goes with the last link.
    public init(
        loop: EventLoop, log: LogSink, environment: [String: String] = ProcessInfo.processInfo.environment,
        staysOpen: Bool = false
    ) {
        self.loop = loop
        self.log = log
        service = BlueZService(
            loop: loop, log: log, busAddress: DBusConnection.systemBusAddress(environment: environment),
            staysOpen: staysOpen)
    }

    public var descriptor: TransportDescriptor {
        TransportDescriptor(
            name: "bluez", version: "1.0.0", vendor: "meshhost", license: "Apache-2.0",
            capabilities: [.scanning, .pairing, .adapter, .ownDeadlines], options: BlueZSettings.options)
    }

    public func validate(_ options: OptionValues) -> [OptionIssue] {
        BlueZSettings.read(options).issues
    }

    /// The device and the adapter. The kind of the address does not count: what is not said matches both.
    public func identity(_ options: OptionValues) -> String? {
        guard let settings = BlueZSettings.read(options).settings else { return nil }
        let adapter = BLEAddress(settings.adapter)?.text ?? settings.adapter
        return "\(settings.transport.target)" + (adapter.isEmpty ? "" : " through \(adapter)")
    }

    public func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport {
        let bluez = try read(settings)
        return BLETransport(
            loop: loop, central: BlueZCentral(service, bluez, log: settings.environment.log),
            settings: bluez.transport, environment: settings.environment)
    }

    func read(_ settings: TransportSettings) throws(MeshError) -> BlueZSettings {
        let (bluez, issues) = BlueZSettings.read(settings.options)
        guard let bluez else {
            throw MeshError(
                .configurationInvalid, issues.map(\.message).joined(separator: "; "),
                context: .init(device: settings.device))
        }
        return bluez
    }
}
