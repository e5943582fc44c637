// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshConfig
internal import MeshTransportAPI
internal import MeshWire

/// A device that was heard, as it is shown. Nothing in it can harm a terminal.
struct Sighting: Equatable {
    var module: String
    var address: String
    var name: String
    /// In dBm.
    var signal: Int?
    var kind: DeviceKind
    /// The configured device that this is.
    var device: String?
    var advertisement: [UInt8]

    var json: JSONValue {
        [
            "type": .string(ScanEvent.seen.rawValue), "module": .string(module), "address": .string(address),
            "name": .string(name),
            "rssi": signal.map { .int(Int64($0)) } ?? .null, "kind": .string(kind.rawValue),
            "device": device.map { .string($0) } ?? .null,
            "advertisement": .string(advertisement.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()),
        ]
    }
}

/// Which devices are configured, by what a scan tells of them.
struct KnownDevices: Sendable {
    private struct Known {
        var name: String
        var module: String
        var address: String?
        /// Of a file, such as a serial port; may be a link to it.
        var path: String?
        var advertisedName: String?

        func isMeant(_ address: String, _ name: String) -> Bool {
            if let known = self.address { return known.lowercased() == address.lowercased() }
            if let path { return KnownDevices.isOneFile(path, address) }
            return advertisedName == name && !name.isEmpty
        }
    }

    private let devices: [Known]

    init(_ config: HostConfig) {
        devices = config.devices.map {
            Known(
                name: $0.name, module: $0.module, address: $0.text(ofOption: "address"),
                path: $0.text(ofOption: "path"), advertisedName: $0.text(ofOption: "name"))
        }
    }

    /// What a result of this module is shown as.
    func sighting(_ result: ScanResult, _ module: String) -> Sighting {
        let (data, _) = AdvertisingData.decode(result.advertisement)
        let name = result.name.isEmpty ? data.localName?.text ?? "" : result.name
        let device = devices.first { $0.module == module && $0.isMeant(result.address, name) }
        return Sighting(
            module: module, address: result.address.shownFromAir, name: name.shownFromAir, signal: result.rssi,
            kind: DeviceKind(data, name: name), device: device?.name, advertisement: result.advertisement)
    }

    /// Whether two paths lead to one file now: a port has a name of its own, and some that udev gives it.
    private static func isOneFile(_ first: String, _ second: String) -> Bool {
        if first == second { return true }
        // What was heard over the air is an address, and no path.
        guard second.hasPrefix("/"), let one = resolved(first), let other = resolved(second) else { return false }
        return one == other
    }

    /// Nil: it leads nowhere.
    private static func resolved(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}

extension PairingReport {
    /// Without anything that could harm a terminal.
    var shownFromAir: PairingReport {
        var report = self
        report.address = address.shownFromAir
        report.name = name.shownFromAir
        return report
    }
}

extension String {
    /// Text from the air for a terminal: one line of at most 64 characters, without anything that moves the cursor or turns
    /// the writing round.
    var shownFromAir: String {
        var scalars = String.UnicodeScalarView()
        for scalar in unicodeScalars.prefix(64) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
                scalars.append("\u{FFFD}")
            default: scalars.append(scalar)
            }
        }
        return String(scalars)
    }
}
