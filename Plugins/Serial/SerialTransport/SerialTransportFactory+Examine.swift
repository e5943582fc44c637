// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshLoop
public import MeshTransportAPI

extension SerialTransportFactory: TransportExamining {
    public func examine(_ devices: [TransportSettings]) async -> [Finding] {
        let catalogue = watcher.catalogue
        let asked = devices.compactMap { device in
            SerialSettings.read(device.options).settings.map { (device: device.device, settings: $0) }
        }
        return await loop.blocking {
            let ports = catalogue.ports()
            return asked.map { device, settings in
                catalogue.finding(device, settings.choice, among: ports)
            }
        }
    }
}

extension SerialPortCatalogue {
    /// What can be said of a device's port without opening it: opening moves its lines.
    fileprivate func finding(_ device: String, _ choice: SerialChoice, among ports: [SerialPortInfo]) -> Finding {
        guard let path = path(of: choice) else {
            return Finding(
                .problem, device, "\(choice) is not there",
                advice: ports.isEmpty
                    ? "plug the radio in; there is no serial port on this machine"
                    : "plug the radio in, or use another port: \(ports.map(\.path).joined(separator: ", "))")
        }
        guard isDevice(path) else {
            return Finding(
                .problem, device, "\(path) is no serial port",
                advice: "correct path: meshhost scan --module serial shows what is there")
        }
        guard isUsable(choice) else {
            return Finding(
                .problem, device, "no permission to open \(path)",
                advice: "add the user that meshhost runs as to the group dialout: sudo usermod -aG dialout USER")
        }
        let holders = SerialHolder.all(of: path).filter { $0.processID != getpid() }
        guard holders.isEmpty else {
            let names = holders.map(\.description).joined(separator: " and ")
            return Finding(
                .problem, device, "\(path) is in use by \(names)",
                advice: holders.contains { $0.name == "ModemManager" }
                    ? "keep ModemManager from it: sudo systemctl disable --now ModemManager" : "end that program")
        }
        let port = port(at: path)
        let board = SerialBoard.behind(port?.usb)
        if let stable = port?.stablePath, !stable.isEmpty, case .path(let written) = choice, written == port?.device {
            return Finding(
                .note, device, "\(path) is there (\(board.name)), but may be another port after a restart",
                advice: "write path = \"\(stable)\"")
        }
        return Finding(.ok, device, "\(path) is there (\(board.name))")
    }
}
