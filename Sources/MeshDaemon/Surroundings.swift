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
    func factory(_ name: String) throws(MeshError) -> any TransportFactory {
        switch catalog.lookUp(config.request(forModule: name)) {
        case .found(let factory): return factory
        case .unavailable(let reason):
            throw MeshError(.moduleRefused, "module \"\(name)\" is not available: \(reason)")
        }
    }

    /// The modules of the configured devices that can be used.
    var configuredModules: [String] {
        var names: [String] = []
        for device in config.devices where device.disabledReason == nil && !names.contains(device.module) {
            names.append(device.module)
        }
        return names
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
                factory = try self.factory(name)
            } catch {
                // Without devices nobody needs it.
                if !names.isEmpty {
                    findings.append(
                        DoctorFinding(name, .problem, name, error.message, advice: "see `meshhost modules`"))
                }
                continue
            }
            guard let examining = factory as? any TransportExamining else { continue }
            var devices: [TransportSettings] = []
            for device in config.devices where device.module == name && device.disabledReason == nil {
                let environment = TransportEnvironment(log: log.adding([("device", device.name)])) { _ in }
                do throws(MeshError) {
                    devices.append(try TransportSettings(device, of: factory, secrets, environment))
                } catch {
                    findings.append(
                        DoctorFinding(
                            name, .problem, device.name, error.message, advice: "correct its options in the config"))
                }
            }
            findings += await examining.examine(devices).map { DoctorFinding(area: name, finding: $0) }
        }
        return findings
    }
}
