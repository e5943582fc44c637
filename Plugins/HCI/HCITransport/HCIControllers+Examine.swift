// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// Looking whether what links need is there: `meshhost doctor`.
extension HCIControllers {
    /// What is right and wrong for these devices. A controller that is not in use yet is opened, and so reset; but no adapter
    /// is taken from bluetoothd for a look at it.
    func examine(_ devices: [(name: String, settings: HCISettings)]) async -> [Finding] {
        guard !devices.isEmpty else {
            return [
                Finding(
                    .problem, "hci", "no device names a controller",
                    advice: "add a device with module = \"hci\" and controller = \"unix:PATH\" to the config")
            ]
        }
        var ports: [HCIPort] = []
        for (_, settings) in devices where !ports.contains(settings.controller) { ports.append(settings.controller) }
        for device in devices where !device.settings.controller.isAdapter {
            // All at once: one that does not answer takes its time.
            await controller(at: device.settings.controller, bonds: device.settings.bondDirectory).start()
        }
        var findings: [Finding] = []
        for port in ports {
            let own = devices.filter { $0.settings.controller == port }
            guard let directory = own.first?.settings.bondDirectory else { continue }
            findings += await controller(at: port, bonds: directory).examine(own)
        }
        return findings
    }
}

extension HCIController {
    fileprivate func examine(_ devices: [(name: String, settings: HCISettings)]) async -> [Finding] {
        let (finding, own) = await look()
        await saver?.value
        var findings = [finding]
        if let poor = quality.finding("\(port)", now: loop.now) { findings.append(poor) }
        if let bondTrouble {
            findings.append(
                Finding(
                    .problem, "bond_dir", "the keys of paired devices are not kept: \(bondTrouble)",
                    advice: "name a folder that the daemon's user may write to"))
        } else if file == nil {
            findings.append(Finding(.note, "bond_dir", "is empty: paired devices are forgotten when meshhost ends"))
        }
        for (name, settings) in devices where settings.bondDirectory != devices.first?.settings.bondDirectory {
            findings.append(
                Finding(
                    .note, name,
                    "has another bond_dir than a device on the same controller, and whichever connects first "
                        + "decides", advice: "give all devices of \(port) the same bond_dir"))
        }
        guard let own else { return findings }
        return findings + devices.map { self.finding($0.name, $0.settings.transport, own) }
    }

    /// What there is to say of the controller, and the address that bonds belong to, if it is known.
    private func look() async -> (Finding, own: DeviceAddress?) {
        if case .adapter(let index) = port, !isWanted { return await ask(index) }
        await settle()
        guard let descriptor else {
            return (
                reopening.failure.map(problem)
                    ?? Finding(.problem, "\(port)", "has not answered yet", advice: "ask again in a moment"), nil
            )
        }
        let version = descriptor.bluetoothVersion.map { "Bluetooth \($0)" } ?? "HCI version \(descriptor.hciVersion)"
        return (
            Finding(.ok, "\(port)", "answers: \(version), address \(descriptor.ownAddress)"), descriptor.ownAddress
        )
    }

    /// What the kernel says of an adapter that is not ours yet.
    private func ask(_ index: UInt16) async -> (Finding, own: DeviceAddress?) {
        await loadBonds()
        do throws(AdapterFailure) {
            let facts = try await loop.blocking { () throws(AdapterFailure) in try AdapterFacts.ask(index) }
            return (facts.finding(port), facts.publicAddress ?? book.randomAddress)
        } catch {
            return (problem(error.error(port)), nil)
        }
    }

    /// Why it cannot be used, with the next step apart, which stands behind the first semicolon of an error.
    private func problem(_ failure: MeshError) -> Finding {
        let parts = failure.message.split(separator: "; ", maxSplits: 1).map(String.init)
        return Finding(.problem, "\(port)", parts.first ?? "", advice: parts.count > 1 ? parts[1] : nil)
    }

    private func finding(_ name: String, _ settings: BLETransportSettings, _ own: DeviceAddress) -> Finding {
        if !bondedPeers(settings.target, of: own).isEmpty { return Finding(.ok, name, "is paired") }
        if case .name(let advertised) = settings.target, found[advertised] == nil {
            return Finding(.note, name, "has not been met yet: whether it is paired is known by its address alone")
        }
        return settings.passkey == nil
            ? Finding(.ok, name, "is not paired, and has no pin")
            : Finding(.note, name, "is not paired yet; that is done when it connects")
    }
}

extension ControllerDescriptor {
    /// The version of the Core Specification, for people (Assigned Numbers §2.1); nil for one that has no name here.
    var bluetoothVersion: String? {
        let names = ["4.0", "4.1", "4.2", "5.0", "5.1", "5.2", "5.3", "5.4", "6.0"]
        let index = Int(hciVersion) - 6
        return names.indices.contains(index) ? names[index] : nil
    }
}
