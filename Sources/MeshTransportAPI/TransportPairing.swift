// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A factory that can pair with devices, and forget them, without anybody at hand.
public protocol TransportPairing: TransportFactory {
    /// Pairs with the device that the settings describe, so that links to it need nobody. A device whose keys are stored
    /// already is left as it is. Cancelling the task ends the attempt.
    func pair(_ settings: TransportSettings) async throws -> PairingReport

    /// Forgets the device's keys. Returns whether there were any.
    func unpair(_ settings: TransportSettings) async throws -> Bool
}

/// How a pairing went.
public struct PairingReport: Sendable, Hashable {
    /// The device that was found.
    public var address: String
    /// The name it gives itself; comes from the air, so it may hold anything.
    public var name: String
    /// Its keys were stored before: nothing was done.
    public var wasBonded: Bool
    /// The passkey was asked for.
    public var usedPasskey: Bool

    public init(address: String, name: String, wasBonded: Bool, usedPasskey: Bool) {
        self.address = address
        self.name = name
        self.wasBonded = wasBonded
        self.usedPasskey = usedPasskey
    }
}

extension PairingReport {
    /// The report as it crosses the module boundary and the control socket.
    public var json: JSONValue {
        [
            "address": .string(address), "name": .string(name), "was_bonded": .bool(wasBonded),
            "used_passkey": .bool(usedPasskey),
        ]
    }

    /// Reads what ``json`` gives; nil when there is no address.
    public init?(_ json: JSONValue) {
        guard let address = json["address"]?.stringValue else { return nil }
        self.init(
            address: address, name: json["name"]?.stringValue ?? "", wasBonded: json["was_bonded"] == true,
            usedPasskey: json["used_passkey"] == true)
    }
}
