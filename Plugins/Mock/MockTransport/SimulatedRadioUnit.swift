// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Synchronization

/// A simulated radio as it stands on a shelf: it outlives the links to it, and serves one client, the newest.
///
/// Unchecked: `radio` and `holder` are used on the loop of the transports that share it, and nowhere else.
final class SimulatedRadioUnit: @unchecked Sendable {
    let settings: SimulatedRadioSettings
    /// Nil until the first client comes.
    var radio: SimulatedRadio?
    /// Ends the link of the client that has it.
    private var holder: (() -> Void)?

    init(_ settings: SimulatedRadioSettings) {
        self.settings = settings
    }

    /// A new client: the one before is thrown out.
    func take(_ end: @escaping () -> Void) {
        holder?()
        holder = end
    }

    func leave() {
        radio?.clientLeft()
        holder = nil
    }
}

/// The radios of one module, by the name of their device.
final class SimulatedRadioShelf: Sendable {
    private let units = Mutex<[String: SimulatedRadioUnit]>([:])

    /// The radio of a device; a new one if there was none, or another one in its place.
    func unit(_ device: String, _ settings: SimulatedRadioSettings) -> SimulatedRadioUnit {
        units.withLock { units in
            if let unit = units[device], unit.settings == settings { return unit }
            let unit = SimulatedRadioUnit(settings)
            units[device] = unit
            return unit
        }
    }
}
