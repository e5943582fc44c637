// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshRuntime

struct TransportRegistryTests {
    private struct Factory: TransportFactory {
        var descriptor: TransportDescriptor

        init(_ name: String) {
            descriptor = TransportDescriptor(
                name: name, version: "1.0.0", vendor: "test", license: "Apache-2.0", options: [])
        }

        func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport {
            throw MeshError(.notSupported, "a test makes none")
        }
    }

    private let settings = TransportSettings(
        device: "roof", options: [OptionSpec]().resolve([:]).values, written: [:],
        environment: TransportEnvironment(log: .none, linkEvents: { _ in }))

    @Test func `a registered factory is found and used`() throws {
        var registry = TransportRegistry()
        try registry.register(Factory("tcp"))
        try registry.register(Factory("mock"))
        #expect(registry.all.map(\.descriptor.name) == ["mock", "tcp"])
        #expect(try registry.factory("tcp").descriptor.name == "tcp")
        let error = #expect(throws: MeshError.self) { _ = try registry.makeTransport("tcp", settings) }
        #expect(error?.code == .notSupported)
        #expect(error?.context.device == "roof")
    }

    @Test func `an unknown name is answered with the nearest`() throws {
        var registry = TransportRegistry()
        let none = #expect(throws: MeshError.self) { _ = try registry.factory("tcp") }
        #expect(none?.message == "no module is called \"tcp\"; no modules are loaded")
        try registry.register(Factory("serial"))
        let near = #expect(throws: MeshError.self) { _ = try registry.factory("seriel") }
        #expect(near?.code == .moduleRefused)
        #expect(near?.message == "no module is called \"seriel\"; did you mean \"serial\"?")
        let far = #expect(throws: MeshError.self) { _ = try registry.factory("bluez") }
        #expect(far?.message == "no module is called \"bluez\"; loaded: serial")
    }

    @Test func `a refused module is answered with its reason`() throws {
        var registry = TransportRegistry()
        registry.refuse("acme", because: MeshError(.moduleRefused, "acme.so is writable by its group"))
        let error = #expect(throws: MeshError.self) { _ = try registry.factory("acme") }
        #expect(error?.message == "acme.so is writable by its group")
        #expect(registry.refused.map(\.name) == ["acme"])
        try registry.register(Factory("acme"))
        #expect(registry.refused.isEmpty)
    }

    @Test func `a name is taken once`() throws {
        var registry = TransportRegistry()
        try registry.register(Factory("tcp"))
        #expect(throws: MeshError(.moduleRefused, "")) { try registry.register(Factory("tcp")) }
    }
}
