// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
public import MeshTransportAPI

/// Makes links to devices that speak KISS on a serial port: the module `kiss`.
public struct KISSTransportFactory: TransportFactory {
    private let loop: EventLoop

    /// All its transports run on `loop`.
    public init(loop: EventLoop) {
        self.loop = loop
    }

    public var descriptor: TransportDescriptor {
        TransportDescriptor(
            name: "kiss", version: "1.0.0", vendor: "example", license: "Apache-2.0",
            options: [
                OptionSpec("path", .string, default: nil, help: "The serial port, such as one in /dev/serial/by-id."),
                OptionSpec("baud", .int, default: "115200", help: "Its speed, 8N1."),
                OptionSpec("rtscts", .bool, default: "false", help: "Whether RTS and CTS hold back the sender."),
            ])
    }

    /// What the table cannot say. Also called by `meshhost check`: nothing of the outside world is touched.
    public func validate(_ options: OptionValues) -> [OptionIssue] {
        var issues: [OptionIssue] = []
        let path = options.string("path")
        if !path.hasPrefix("/") {
            issues.append(
                OptionIssue(
                    option: "path", message: "\"\(path)\" is not the path of a device", hint: "for example /dev/ttyUSB0"
                ))
        }
        let baud = options.int("baud")
        if !(300...4_000_000).contains(baud) {
            issues.append(OptionIssue(option: "baud", message: "\(baud) is outside 300 to 4000000"))
        }
        return issues
    }

    public func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport {
        let options = settings.options
        if let issue = validate(options).first {
            throw MeshError(.configurationInvalid, issue.message, context: .init(device: settings.device))
        }
        let line = SerialLine(
            path: options.string("path"), baud: UInt32(options.int("baud")),
            hardwareFlowControl: options.bool("rtscts"))
        return KISSTransport(loop: loop, line: line, environment: settings.environment)
    }
}
