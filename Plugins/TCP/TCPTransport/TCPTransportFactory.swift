// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
public import MeshTransportAPI

/// Makes links to radios that listen on TCP: the module `tcp`.
public struct TCPTransportFactory: TransportFactory {
    private let loop: EventLoop

    /// All its transports run on `loop`.
    public init(loop: EventLoop) {
        self.loop = loop
    }

    public var descriptor: TransportDescriptor {
        TransportDescriptor(
            name: "tcp", version: "1.0.0", vendor: "meshhost", license: "Apache-2.0",
            capabilities: [.pipelinedReads, .network],
            options: TCPSettings.options)
    }

    public func validate(_ options: OptionValues) -> [OptionIssue] {
        TCPSettings.read(options).issues
    }

    /// Its endpoint: a radio has one session, so two devices at one would take it from each other.
    public func identity(_ options: OptionValues) -> String? {
        guard let endpoint = TCPSettings.read(options).settings?.endpoint else { return nil }
        return TCPEndpoint(host: endpoint.canonicalHost, port: endpoint.port).description
    }

    public func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport {
        let (tcp, issues) = TCPSettings.read(settings.options)
        guard let tcp else {
            throw MeshError(
                .configurationInvalid, issues.map(\.message).joined(separator: "; "),
                context: .init(device: settings.device))
        }
        return TCPTransport(loop: loop, settings: tcp, environment: settings.environment)
    }
}
