// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
public import MeshTransportAPI

/// What the module is called, the options of a device, and what makes links.
public struct AcmeTransportFactory: TransportFactory {
    private let loop: EventLoop

    /// All its transports run on `loop`.
    public init(loop: EventLoop) {
        self.loop = loop
    }

    /// YOURS: the name (that of Package.swift), version, vendor, license, and the table of options.
    public var descriptor: TransportDescriptor {
        TransportDescriptor(
            name: "acme", version: "0.1.0", vendor: "example", license: "Apache-2.0",
            options: [OptionSpec("path", .string, default: nil, help: "The socket that the device listens on.")])
    }

    /// What the table cannot say. Also called by `meshhost check`: nothing of the outside world is touched.
    public func validate(_ options: OptionValues) -> [OptionIssue] {
        let path = options.string("path")
        guard !path.hasPrefix("/") || path.utf8.count > 107 else { return [] }
        return [
            OptionIssue(
                option: "path", message: "\"\(path)\" is not the path of a socket",
                hint: "an absolute path of at most 107 bytes")
        ]
    }

    public func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport {
        if let issue = validate(settings.options).first {
            throw MeshError(.configurationInvalid, issue.message, context: .init(device: settings.device))
        }
        return AcmeTransport(
            loop: loop, path: settings.options.string("path"), environment: settings.environment)
    }
}
