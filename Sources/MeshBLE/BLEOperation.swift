// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What a link needs a central to do: one at a time, each started by an action and ended by a fact.
enum BLEOperation: Sendable, Hashable {
    case adopt
    case removeBond
    case connect
    case discoverServices
    case discoverCharacteristics(GATTService)
    case pair
    case subscribe(GATTCharacteristic)
    case readWriteLength(GATTCharacteristic)
    case write
    case close

    /// As in "while … to RADIO".
    var activity: String {
        switch self {
        case .adopt: "looking for a connection that is there already"
        case .removeBond: "removing the old bond"
        case .connect: "connecting"
        case .discoverServices: "discovering services"
        case .discoverCharacteristics: "discovering characteristics"
        case .pair: "pairing"
        case .subscribe: "subscribing to notifications"
        case .readWriteLength: "reading the longest write"
        case .write: "writing"
        case .close: "disconnecting"
        }
    }
}

/// What a ``BLEOperation`` gave.
enum BLEOutcome: Sendable, Hashable {
    /// The device was connected already, or (nil) was not.
    case adopted(isBonded: Bool?)
    case bondRemoved
    case connected(isBonded: Bool)
    case services([GATTService])
    case characteristics([GATTCharacteristic])
    case paired(PairingOutcome)
    case subscribed
    case writeLength(Int)
    case closed

    /// Whether a link came with it, which has to be closed where nobody wants it any more.
    var bringsLink: Bool {
        switch self {
        case .adopted(let isBonded): isBonded != nil
        case .connected: true
        case .bondRemoved, .services, .characteristics, .paired, .subscribed, .writeLength, .closed: false
        }
    }
}
