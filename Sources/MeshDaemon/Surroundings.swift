// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshConfig
internal import MeshLoop
internal import MeshTransportAPI

/// What modules can be asked beside links: which devices are around, pairing, and whether all that links need is there.
///
/// The same for the daemon and for a command that no daemon answers. Used on the loop's thread only.
struct Surroundings {
    let catalog: ModuleCatalog
    let config: HostConfig
    let loop: EventLoop
    let log: LogSink

    /// The module of devices that are not configured.
    static let radioModule = "bluez"

    var secrets: SecretSource { SecretSource(environment: ProcessInfo.processInfo.environment) }

    // MARK: Modules

    /// A module by its name. Throws what `meshhost modules` says of it.
    func factory(
        _ name: String, isolation: isolated (any Actor)? = #isolation
    ) async throws(MeshError) -> any TransportFactory {
        try await catalog.factory(for: config.request(forModule: name))
    }

    /// The modules of the configured devices that can be used.
    var configuredModules: [String] {
        var names: [String] = []
        for device in config.devices where device.disabledReason == nil && !names.contains(device.module) {
            names.append(device.module)
        }
        return names
    }

    /// The configured devices of a module with their secrets, and what is wrong with the others.
    func configuredDevices(
        of factory: any TransportFactory
    ) -> (devices: [TransportSettings], wrong: [(device: String, error: MeshError)]) {
        var devices: [TransportSettings] = []
        var wrong: [(device: String, error: MeshError)] = []
        for device in config.devices where device.module == factory.descriptor.name && device.disabledReason == nil {
            let environment = TransportEnvironment(log: log.adding([("device", device.name)])) { _ in }
            do throws(MeshError) {
                devices.append(try TransportSettings(device, of: factory, secrets, environment))
            } catch {
                wrong.append((device.name, error))
            }
        }
        return (devices, wrong)
    }

    // MARK: Describing

    /// What a module knows of an adapter.
    func describe(_ adapter: String, of module: String) async throws(MeshError) -> JSONValue {
        guard let describing = try await factory(module) as? any TransportDescribing else {
            throw MeshError(.notSupported, "module \"\(module)\" does not tell about adapters")
        }
        do {
            return [
                "schema": "meshhost.describe/1", "module": .string(module),
                "adapter": try await describing.describe(adapter),
            ]
        } catch {
            throw MeshError(wrapping: error)
        }
    }

    // MARK: Examining

    /// What these modules say of what their links go through; or those of the configured devices, or without any that of
    /// radios.
    func examine(_ modules: [String]? = nil) async -> [DoctorFinding] {
        var findings: [DoctorFinding] = []
        let names = modules ?? configuredModules
        for name in names.isEmpty ? [Self.radioModule] : names {
            let factory: any TransportFactory
            do throws(MeshError) {
                factory = try await self.factory(name)
            } catch {
                // Without devices nobody needs it.
                if !names.isEmpty {
                    findings.append(
                        DoctorFinding(name, .problem, name, error.message, advice: "see `meshhost modules`"))
                }
                continue
            }
            guard let examining = factory as? any TransportExamining else { continue }
            let (devices, wrong) = configuredDevices(of: factory)
            for (device, error) in wrong {
                findings.append(
                    DoctorFinding(name, .problem, device, error.message, advice: "correct its options in the config"))
            }
            findings += await examining.examine(devices).map { DoctorFinding(area: name, finding: $0) }
        }
        return findings
    }
}
