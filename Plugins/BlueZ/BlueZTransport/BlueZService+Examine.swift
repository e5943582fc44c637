// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshLoop
internal import MeshTransportAPI

/// Looking whether what links need is there: `meshhost doctor`.
extension BlueZService {
    /// What is right and wrong for these devices. Changes nothing but that the connection to the bus is there for the while.
    func examine(_ devices: [(name: String, settings: BlueZSettings)]) async -> [Finding] {
        await retain()
        var findings = serviceFindings
        if outage == nil {
            let choices = Set(devices.map { AdapterChoice($0.settings.adapter) })
            for choice in choices.isEmpty ? [.firstPowered] : choices {
                findings.append(finding(choice))
                if let adapter = objects.adapter(choice)?.path, searches[adapter]?.isStuck == true {
                    findings.append(
                        Finding(
                            .problem, adapterName(choice), "cannot search: bluetoothd does not let it begin",
                            advice: "`bluetoothctl power off` and `on` frees it, as does the option power_on"))
                }
            }
            if !isAgentRegistered {
                findings.append(
                    Finding(
                        .problem, "pairing agent", "bluetoothd did not take the agent that answers with the pin",
                        advice: "look into the log; without it no radio with a pin can be paired with"))
            }
            for (name, settings) in devices { findings += self.findings(name, settings) }
        }
        await releaseAndClose()
        return findings
    }

    private var serviceFindings: [Finding] {
        switch outage {
        case nil: [Finding(.ok, "bluetoothd", "runs, and this user may use it")]
        case .accessDenied?:
            [
                Finding(
                    .problem, "D-Bus", "the policy of the system bus lets this user not use Bluetooth",
                    advice: "join the group bluetooth and log in anew; in a container, mount the bus and run as a user "
                        + "that the policy knows")
            ]
        case .serviceSilent?:
            [
                Finding(
                    .problem, "bluetoothd", "does not answer", advice: "`systemctl restart bluetooth` restarts it")
            ]
        default:
            [
                isOpen
                    ? Finding(
                        .problem, "bluetoothd", "does not run",
                        advice: "`systemctl enable --now bluetooth` starts it, `apt install bluez` installs it")
                    : Finding(
                        .problem, "D-Bus", "the system bus cannot be reached",
                        advice: "`systemctl status dbus` says more; in a container, mount /run/dbus")
            ]
        }
    }

    private func finding(_ choice: AdapterChoice) -> Finding {
        let name = adapterName(choice)
        return switch state(choice) {
        case .poweredOn: Finding(.ok, name, "is there and on")
        case .poweredOff:
            Finding(
                .problem, name, "is switched off",
                advice: "`bluetoothctl power on` switches it on, as does the option power_on")
        case .blocked:
            Finding(.problem, name, "is blocked by rfkill", advice: "`rfkill unblock bluetooth` lifts it")
        case .absent:
            Finding(
                .problem, name, "is not there", advice: "plug it in; `bluetoothctl list` shows what there is")
        case .serviceUnavailable, .unauthorized: Finding(.problem, name, "cannot be asked for")
        case .unusable(let reason): Finding(.problem, name, reason)
        }
    }

    private func findings(_ name: String, _ settings: BlueZSettings) -> [Finding] {
        let choice = AdapterChoice(settings.adapter)
        let target = settings.transport.target
        guard let adapter = objects.adapter(choice) else { return [] }
        guard let device = objects.device(target, on: adapter.path) else {
            return [
                Finding(
                    .note, name, "\(adapter.name) has not heard of \(target) yet",
                    advice: "`meshhost scan` shows whether it is in range")
            ]
        }
        var findings: [Finding] = []
        if device.isConnected, links[device.path] == nil {
            findings.append(
                Finding(
                    .note, name, "is connected to this machine, by another program or by bluetoothd itself",
                    advice: "the link is taken over; if another program uses it, close that one"))
        }
        let hasPasskey = settings.transport.passkey != nil
        switch (device.isBonded, hasPasskey) {
        case (true, _): findings.append(Finding(.ok, name, "is paired"))
        case (false, true): findings.append(Finding(.note, name, "is not paired yet; that is done when it connects"))
        case (false, false): findings.append(Finding(.ok, name, "is known, and not paired"))
        }
        return findings
    }
}
