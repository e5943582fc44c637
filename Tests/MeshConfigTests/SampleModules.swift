// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import MeshTransportAPI

/// Option tables like those of real modules; makes no transports.
struct SampleModule: TransportFactory {
    var descriptor: TransportDescriptor
    var judge: @Sendable (OptionValues) -> [OptionIssue] = { _ in [] }
    var identify: @Sendable (OptionValues) -> String? = { _ in nil }

    func validate(_ options: OptionValues) -> [OptionIssue] { judge(options) }

    func identity(_ options: OptionValues) -> String? { identify(options) }

    func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport {
        throw MeshError(.notSupported, "a sample makes no transports")
    }

    static func named(_ name: String, _ options: [OptionSpec]) -> SampleModule {
        SampleModule(
            descriptor: TransportDescriptor(
                name: name, version: "1.0.0", vendor: "meshhost", license: "Apache-2.0", options: options))
    }

    static let tcp: SampleModule = {
        var module = named(
            "tcp",
            [
                OptionSpec("host", .string, default: nil, help: "The host name or address."),
                OptionSpec("port", .int, default: "5000", help: "The TCP port."),
                OptionSpec("keepalive", .duration, default: "30s", help: "How often an idle link is probed."),
                OptionSpec("tls", .bool, default: "false", help: "Whether to use TLS."),
                OptionSpec("password", .string, default: "", help: "What the bridge asks for.", secret: true),
            ])
        module.judge = { options in
            if options.bool("tls"), options.int("port") == 1 {
                return [OptionIssue(option: "", message: "tls does not work with port 1")]
            }
            return (1...65_535).contains(options.int("port"))
                ? [] : [OptionIssue(option: "port", message: "\(options.int("port")) is no port", hint: "1 to 65535")]
        }
        return module
    }()

    static let bluez: SampleModule = {
        var module = named(
            "bluez",
            [
                OptionSpec("address", .string, default: nil, help: "The Bluetooth address."),
                OptionSpec("pin", .string, default: "", help: "The pairing PIN.", secret: true),
                OptionSpec("adapter", .string, default: "", help: "The local adapter."),
            ])
        module.identify = { options in
            let adapter = options.string("adapter")
            return options.string("address").uppercased() + (adapter.isEmpty ? "" : " through \(adapter)")
        }
        module.judge = { options in
            options.string("pin").allSatisfy(\.isNumber)
                ? [] : [OptionIssue(option: "pin", message: "a PIN has digits only")]
        }
        return module
    }()

    static let serial = named(
        "serial", [OptionSpec("path", .string, default: nil, help: "The device file.")])

    /// Has an option that is called like a key of the host.
    static let acme = named(
        "acme-lora",
        [
            OptionSpec("channel", .int, default: "0", help: "The channel."),
            OptionSpec("name", .string, default: "", help: "What the radio calls itself."),
            OptionSpec("key", .int, default: "0", help: "The network key.", secret: true),
        ])

    static func lookUp(_ request: ModuleRequest) -> ModuleLookup {
        if let module = [tcp, bluez, serial, acme].first(where: { $0.descriptor.name == request.name }) {
            return .found(module)
        }
        let places =
            request.path.map { [$0] } ?? (request.searchPath.isEmpty ? ["/usr/lib/meshhost"] : request.searchPath)
        return .unavailable(reason: "searched \(places.joined(separator: ", "))")
    }
}

/// Reads texts as layers `a.toml`, `b.toml`, … with the sample modules.
func read(
    _ texts: String..., environment: [String: String] = [:], settings: [String] = []
) -> ConfigReading {
    let names = ["a.toml", "b.toml", "c.toml"]
    return HostConfig.reading(
        ConfigInput(
            texts: zip(names, texts).map { ConfigText(path: $0, text: $1) }, environment: environment,
            settings: settings),
        modules: SampleModule.lookUp)
}

extension ConfigReading {
    /// All diagnostics as a user sees them, without source lines.
    var report: String { diagnostics.rendered(showingSource: false) }
}
