// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI
public import MeshWire

/// Whether Bluetooth can be used, and if not, why.
public enum BluetoothState: Sendable, Hashable {
    case poweredOn
    /// The adapter is switched off.
    case poweredOff
    /// The adapter is blocked by rfkill: software or a switch.
    case blocked
    /// There is no such adapter.
    case absent
    /// The service that owns the adapter is not running, or not reachable yet.
    case serviceUnavailable
    /// The operating system lets this program not use Bluetooth.
    case unauthorized
    /// It cannot be used for a reason that the central has the words for: a sentence with what to try.
    case unusable(String)

    /// The failure of something that needs Bluetooth; nil when it can be used. `adapter` is its name for people.
    public func error(adapter: String) -> MeshError? {
        switch self {
        case .poweredOn: nil
        case .poweredOff:
            MeshError(.adapterUnavailable, "\(adapter) is switched off; `bluetoothctl power on` switches it on")
        case .blocked:
            MeshError(.adapterUnavailable, "\(adapter) is blocked by rfkill; `rfkill unblock bluetooth` lifts it")
        case .absent: MeshError(.adapterUnavailable, "there is no \(adapter); is the dongle plugged in?")
        case .serviceUnavailable:
            MeshError(
                .adapterUnavailable, "the Bluetooth service is not running; `systemctl start bluetooth` starts it")
        case .unauthorized:
            MeshError(
                .permissionDenied,
                "this user may not use Bluetooth: the policy of the system bus refuses; see `meshhost doctor`")
        case .unusable(let reason): MeshError(.adapterUnavailable, reason)
        }
    }
}

/// Which device is meant.
public enum BLETarget: Sendable, Hashable {
    case address(BLEAddress)
    /// The name the device advertises, whole.
    case name(String)
}

extension BLETarget: CustomStringConvertible {
    public var description: String {
        switch self {
        case .address(let address): address.text
        case .name(let name): "\"\(name)\""
        }
    }
}

/// A six-digit passkey (Core Specification, Vol 3 Part H §2.3.5.3).
public struct BLEPasskey: Sendable, Hashable {
    /// 0...999999.
    public let value: UInt32

    public init?(_ value: UInt32) {
        guard value <= 999_999 else { return nil }
        self.value = value
    }

    /// Reads one to six digits.
    public init?(_ text: String) {
        guard (1...6).contains(text.utf8.count), text.allSatisfy({ $0.isASCII && $0.isNumber }),
            let value = UInt32(text)
        else { return nil }
        self.value = value
    }
}

/// What a central has to know to open a link.
public struct GATTConnectRequest: Sendable, Hashable {
    public var target: BLETarget
    /// Answers whoever asks for the passkey of this device, also when the device begins the pairing.
    public var passkey: BLEPasskey?
    /// Whether a pairing that the device begins, or asks for, is taken. ``GATTLink/pair()`` is another matter.
    public var takesPairing = true
    /// Looked for while the device is not known yet.
    public var service: BluetoothUUID

    public init(target: BLETarget, passkey: BLEPasskey? = nil, service: BluetoothUUID) {
        self.target = target
        self.passkey = passkey
        self.service = service
    }
}

/// Opens links to devices: one local adapter, as a Bluetooth host (BlueZ, or one of our own on HCI) offers it.
///
/// Everything is called, and every handler runs, on the event loop. The deadlines are the caller's: it cancels the task of an
/// operation. An operation that is cancelled ends, and undoes, what it began, and only then throws; it may also return with
/// success that came in between, and the caller then closes what it got. An operation never waits for ever where its service
/// is gone.
public protocol GATTCentral: Sendable {
    /// The adapter as people name it, such as `hci0`.
    var adapterName: String { get async }

    /// Tells `observer` what Bluetooth is like now, before this returns, and at each change until the token is dropped.
    func observeState(_ observer: @escaping @Sendable (BluetoothState) -> Void) async -> any GATTObservation

    /// A link to a device that is connected already, by whomever; nil if it is not connected.
    func adopt(_ request: GATTConnectRequest) async throws(GATTError) -> (any GATTLink)?

    /// Finds the device, looking for it if need be, and connects.
    func connect(_ request: GATTConnectRequest) async throws(GATTError) -> any GATTLink

    /// Forgets the device's keys. The link to it, if there is one, ends. Nothing happens when there is no bond.
    func removeBond(_ target: BLETarget) async throws(GATTError)

    /// What was last heard of the device, for the text of an error. Default: nothing.
    func lastSighting(of target: BLETarget) async -> GATTPeer?
}

extension GATTCentral {
    public func lastSighting(of target: BLETarget) async -> GATTPeer? { nil }
}

/// Ends an observation when it is dropped.
public protocol GATTObservation: AnyObject, Sendable {}

/// One connection to one device, from `connect` until it is closed or lost; a new connection is a new object, so nothing of an old one
/// can be taken for something of the new one.
public protocol GATTLink: AnyObject, Sendable {
    /// The other end.
    var peer: GATTPeer { get async }

    /// `handler` is told once, that the link has ended without ``close()``: at once if it has.
    func setDisconnectionHandler(_ handler: @escaping @Sendable (GATTError) -> Void) async

    /// The services with these UUIDs; those that the device lacks are missing.
    func discoverServices(_ uuids: [BluetoothUUID]) async throws(GATTError) -> [GATTService]

    /// The characteristics of a service.
    func discoverCharacteristics(of service: GATTService) async throws(GATTError) -> [GATTCharacteristic]

    /// Pairs and bonds. What the device asks for is answered with the request's passkey. Returns at once with a device that is
    /// bonded.
    func pair() async throws(GATTError) -> PairingOutcome

    /// From here on `handler` gets each value once, in order, also the first ones that come before this returns. Returns when the device has
    /// confirmed.
    func startNotifications(
        of characteristic: GATTCharacteristic, _ handler: @escaping @Sendable (Data) -> Void
    ) async throws(GATTError)

    /// The longest value one write carries: ATT_MTU - 3, at most 512 (Core Specification, Vol 3 Part F §3.2.9).
    func maximumWriteLength(of characteristic: GATTCharacteristic) async throws(GATTError) -> Int

    /// Writes a value. With `withResponse` it returns when the device has acknowledged it. One at a time.
    func write(
        _ value: Data, to characteristic: GATTCharacteristic, withResponse: Bool
    ) async throws(GATTError)

    /// What a person who looks after the link may want to know, without secrets: one object for `meshhost status`. Default:
    /// nothing.
    var diagnostics: [String: JSONValue] { get async }

    /// Ends the link, and with it everything it began; returns when it has ended. Idempotent. No handler is called after it.
    func close() async
}

extension GATTLink {
    public var diagnostics: [String: JSONValue] {
        get async { [:] }
    }
}

/// The other end of a link.
public struct GATTPeer: Sendable, Hashable {
    public var address: BLEAddress
    /// As it advertises; comes from the air.
    public var name: String
    /// Signal strength when it was last heard, dBm.
    public var rssi: Int?
    /// Whether keys are stored.
    public var isBonded: Bool

    public init(address: BLEAddress, name: String = "", rssi: Int? = nil, isBonded: Bool = false) {
        self.address = address
        self.name = name
        self.rssi = rssi
        self.isBonded = isBonded
    }
}

/// How a pairing went.
public struct PairingOutcome: Sendable, Hashable {
    /// Keys were stored already; nothing was done.
    public var wasBonded: Bool
    /// The device asked for the passkey. If not, the bond protects against eavesdropping only (Just Works).
    public var usedPasskey: Bool

    public init(wasBonded: Bool = false, usedPasskey: Bool) {
        self.wasBonded = wasBonded
        self.usedPasskey = usedPasskey
    }
}

/// A service of the device behind a link.
public struct GATTService: Sendable, Hashable {
    public var uuid: BluetoothUUID
    /// The central's own name for it: an object path, a handle.
    public var id: String

    public init(uuid: BluetoothUUID, id: String) {
        self.uuid = uuid
        self.id = id
    }
}

/// A characteristic of the device behind a link.
public struct GATTCharacteristic: Sendable, Hashable {
    /// Core Specification, Vol 3 Part G §3.3.1.1: the bits are those of the declaration.
    public struct Properties: OptionSet, Sendable, Hashable {
        public let rawValue: UInt8

        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        public static let read = Properties(rawValue: 0x02)
        public static let writeWithoutResponse = Properties(rawValue: 0x04)
        public static let write = Properties(rawValue: 0x08)
        public static let notify = Properties(rawValue: 0x10)
        public static let indicate = Properties(rawValue: 0x20)
    }

    public var uuid: BluetoothUUID
    public var id: String
    public var properties: Properties

    public init(uuid: BluetoothUUID, id: String, properties: Properties) {
        self.uuid = uuid
        self.id = id
        self.properties = properties
    }
}

/// Why an operation on a central or a link failed: what the phase machine has to know, and the error that people get.
public struct GATTError: Error, Sendable {
    public enum Reason: Sendable, Hashable {
        /// The task was cancelled.
        case cancelled
        /// Bluetooth is not usable (any more).
        case bluetoothUnavailable
        /// The device was not found, or did not answer. Trying again may help.
        case unreachable
        /// The link has ended.
        case linkLost
        /// The device refuses the operation because the link is not secure enough, or not authenticated.
        case insufficientSecurity
        /// The device does not know the stored keys any more (HCI 0x06, PIN or Key Missing), or they do not match (0x3D).
        case bondStale
        /// The same is likely, and no more: the bond is replaced where that is allowed, and it is tried again otherwise.
        case bondSuspect
        /// The passkey is wrong, missing, or the device refuses to pair.
        case pairingFailed
        /// Another program uses the device.
        case inUse
        /// The device lacks what the operation needs.
        case notSupported
        /// Something else; the error's disposition says whether trying again may help.
        case other
    }

    public var reason: Reason
    public var error: MeshError

    public init(_ reason: Reason, _ error: MeshError) {
        self.reason = reason
        self.error = error
    }
}
