// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import MeshRuntime
import MeshTransportAPI
import Testing

@testable import MeshDaemon

struct DeviceSettingsTests {
    private struct Factory: TransportFactory {
        var descriptor: TransportDescriptor

        func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport {
            throw MeshError(.notSupported, "")
        }
    }

    private func module(
        _ capabilities: TransportCapabilities, _ options: [String: OptionSpec.Kind] = [:]
    ) -> TransportDescriptor {
        TransportDescriptor(
            name: "bluez", version: "1", vendor: "v", license: "MIT", capabilities: capabilities,
            options: options.map { OptionSpec($0, $1, default: $1 == .duration ? "1s" : "", help: "") })
    }

    private var device = DeviceConfig(name: "roof", module: "bluez")
    private let environment = TransportEnvironment(log: .none) { _ in }

    @Test func `a module with adapters has one gate, until a device names its own`() {
        var device = device
        let module = module(.adapter, ["adapter": .string])
        #expect(DeviceLinkSettings(device, module).adapter == AdapterSettings(name: "bluez", reportsChanges: false))
        device.options["adapter"] = .value("hci1")
        #expect(DeviceLinkSettings(device, module).adapter == AdapterSettings(name: "hci1", reportsChanges: false))
        device.adapter = "hci0"
        #expect(DeviceLinkSettings(device, module).adapter == AdapterSettings(name: "hci0", reportsChanges: false))
    }

    @Test func `a controller of the module's own is such a gate`() {
        var device = device
        device.options["controller"] = .value("unix:/run/hci0")
        let module = module(.adapter, ["controller": .string])
        let gate = AdapterSettings(name: "unix:/run/hci0", reportsChanges: false)
        #expect(DeviceLinkSettings(device, module).adapter == gate)
    }

    @Test func `a module without has the network, or what the device names`() {
        var device = device
        #expect(DeviceLinkSettings(device, module([])).adapter == nil)
        #expect(DeviceLinkSettings(device, module(.network)).adapter == .network)
        device.adapter = "ttyUSB0"
        #expect(DeviceLinkSettings(device, module(.network)).adapter == AdapterSettings(name: "ttyUSB0"))
    }

    @Test func `the host's deadline is a last resort where the module has its own`() {
        #expect(DeviceLinkSettings(device, module([])).policy.connectTimeout == .seconds(10))
        let timeout = module([], ["connect_timeout": .duration])
        #expect(DeviceLinkSettings(device, timeout).policy.connectTimeout == .seconds(15))
        #expect(DeviceLinkSettings(device, module(.ownDeadlines)).policy.connectTimeout == .seconds(200))
    }

    @Test func `keys of the host become the module's options, unless the device sets those`() throws {
        var device = device
        device.adapter = "hci0"
        let factory = Factory(descriptor: module([], ["adapter": .string, "connect_timeout": .duration]))
        func written() throws -> [String: JSONValue] {
            try TransportSettings(device, of: factory, SecretSource(environment: [:]), environment).written
        }
        #expect(try written() == ["adapter": "hci0", "connect_timeout": "10s"])
        device.options = ["adapter": .value("hci1"), "connect_timeout": .value("3s")]
        #expect(try written() == ["adapter": "hci1", "connect_timeout": "3s"])
    }

    @Test func `a module without such options is given none`() throws {
        var device = device
        device.adapter = "hci0"
        let settings = try TransportSettings(
            device, of: Factory(descriptor: module([])), SecretSource(environment: [:]), environment)
        #expect(settings.written.isEmpty)
    }
}
