// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

// What the commands about the session and the radio's own settings carry (companion-protocol §1.5).

/// APP_START.
public struct AppStart: Sendable, Hashable {
    /// Seven bytes the firmware does not read. Known clients send 03 and spaces (meshcore_py 2.3.17).
    public var reserved: Data
    public var appName: String

    public init(appName: String, reserved: Data = Data([0x03, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20])) {
        self.appName = appName
        self.reserved = reserved
    }

    static let empty = AppStart(appName: "")
}

extension AppStart: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.opaque(&reserved, count: 7)
        try visitor.text("app", &appName)
    }
}

/// SET_RADIO_PARAMS. The firmware takes 150000 to 2500000 kHz, 7000 to 500000 Hz, SF 5 to 12 and CR 5 to 8.
public struct RadioParameters: Sendable, Hashable {
    public var frequencyKilohertz: UInt32
    public var bandwidthHertz: UInt32
    public var spreadingFactor: UInt8
    public var codingRate: UInt8
    /// Whether the radio passes packets on; since protocol version 9, on some frequencies only.
    public var repeats: Bool?

    public init(
        frequencyKilohertz: UInt32, bandwidthHertz: UInt32, spreadingFactor: UInt8, codingRate: UInt8,
        repeats: Bool? = nil
    ) {
        self.frequencyKilohertz = frequencyKilohertz
        self.bandwidthHertz = bandwidthHertz
        self.spreadingFactor = spreadingFactor
        self.codingRate = codingRate
        self.repeats = repeats
    }

    static let empty = RadioParameters(
        frequencyKilohertz: 0, bandwidthHertz: 0, spreadingFactor: 0, codingRate: 0)
}

extension RadioParameters: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.integer("frequency_khz", &frequencyKilohertz)
        try visitor.integer("bandwidth_hz", &bandwidthHertz)
        try visitor.integer("spreading_factor", &spreadingFactor)
        try visitor.integer("coding_rate", &codingRate)
        try visitor.flag("repeat", optional: &repeats)
    }
}

/// SET_ADVERT_LATLON.
public struct LocationUpdate: Sendable, Hashable {
    public var location: Coordinates
    /// For later: the firmware does not use it.
    public var altitude: Int32?

    public init(location: Coordinates, altitude: Int32? = nil) {
        self.location = location
        self.altitude = altitude
    }

    static let empty = LocationUpdate(location: .zero)
}

extension LocationUpdate: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.coordinates(&location)
        try visitor.integer("altitude", optional: &altitude)
    }
}

/// SET_OTHER_PARAMS. Each field that is there needs those before it; the firmware leaves the rest as they are.
public struct OtherParameters: Sendable, Hashable {
    /// 1: contacts are added by hand only.
    public var manualAdd: UInt8
    /// Who may ask for telemetry, two bits each: base, location (bits 2, 3), environment (4, 5).
    public var telemetryModes: UInt8?
    /// Whether adverts tell the location.
    public var locationPolicy: UInt8?
    /// How many acknowledgements more than one are sent.
    public var multipleAcknowledgements: UInt8?

    public init(
        manualAdd: UInt8, telemetryModes: UInt8? = nil, locationPolicy: UInt8? = nil,
        multipleAcknowledgements: UInt8? = nil
    ) {
        self.manualAdd = manualAdd
        self.telemetryModes = telemetryModes
        self.locationPolicy = locationPolicy
        self.multipleAcknowledgements = multipleAcknowledgements
    }

    static let empty = OtherParameters(manualAdd: 0)
}

extension OtherParameters: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.integer("manual_add", &manualAdd)
        try visitor.integer("telemetry_modes", optional: &telemetryModes)
        try visitor.integer("location_policy", optional: &locationPolicy)
        try visitor.integer("multi_acks", optional: &multipleAcknowledgements)
    }
}

/// SET_FLOOD_SCOPE: where floods go until the radio restarts, for everybody who uses it.
public enum FloodScope: Sendable, Hashable {
    /// As the radio's default scope says.
    case standard
    /// The region with this key of 16 bytes.
    case region(key: Data)
    /// Everywhere; since protocol version 12.
    case unscoped
}

extension FloodScope: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        var mode: UInt8 = self == .unscoped ? 1 : 0
        try visitor.integer("mode", &mode)
        if mode > 1 { throw visitor.invalid("mode") }
        if mode == 1 { return self = .unscoped }
        var key: Data?
        if case .region(let found) = self { key = found }
        if try visitor.begin("scope_key", isSet: key != nil) {
            var bytes = key ?? Data()
            try visitor.bytes("scope_key", &bytes, count: 16, secret: true)
            self = .region(key: bytes)
        } else {
            self = .standard
        }
    }
}

/// SET_CUSTOM_VAR: a setting of the board's sensors.
public struct CustomVariable: Sendable, Hashable {
    /// Without a colon.
    public var name: String
    public var value: String

    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    static let empty = CustomVariable(name: "", value: "")
}

extension CustomVariable: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        var text = "\(name):\(value)"
        try visitor.text("variable", &text)
        let parts = text.parts(separatedBy: ":", maximum: 2)
        // The firmware asks for three bytes (`len >= 4`).
        guard parts.count == 2, !name.unicodeScalars.contains(":"), text.utf8.count >= 3 else {
            throw visitor.invalid("variable")
        }
        name = parts[0]
        value = parts[1]
    }
}
