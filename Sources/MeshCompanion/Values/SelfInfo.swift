// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// SELF_INFO: who the radio is and how it is set (companion-protocol §1.6).
public struct SelfInfo: Sendable, Hashable {
    public var type: NodeType
    /// dBm. Signed, as SET_RADIO_TX_POWER takes it.
    public var transmitPower: Int8
    /// The most the board can do, dBm.
    public var maximumTransmitPower: Int8
    public var publicKey: PublicKey
    public var location: Coordinates
    public var multipleAcknowledgements: UInt8
    /// Whether adverts tell the location.
    public var locationPolicy: UInt8
    /// Who may ask for telemetry, two bits each: base, location (bits 2, 3), environment (4, 5).
    public var telemetryModes: UInt8
    /// 1: contacts are added by hand only.
    public var manualAdd: UInt8
    public var frequencyKilohertz: UInt32
    public var bandwidthHertz: UInt32
    public var spreadingFactor: UInt8
    public var codingRate: UInt8
    /// May be empty.
    public var name: String

    public init(
        type: NodeType, transmitPower: Int8, maximumTransmitPower: Int8, publicKey: PublicKey,
        location: Coordinates, multipleAcknowledgements: UInt8 = 0, locationPolicy: UInt8 = 0,
        telemetryModes: UInt8 = 0, manualAdd: UInt8 = 0, frequencyKilohertz: UInt32, bandwidthHertz: UInt32,
        spreadingFactor: UInt8, codingRate: UInt8, name: String
    ) {
        self.type = type
        self.transmitPower = transmitPower
        self.maximumTransmitPower = maximumTransmitPower
        self.publicKey = publicKey
        self.location = location
        self.multipleAcknowledgements = multipleAcknowledgements
        self.locationPolicy = locationPolicy
        self.telemetryModes = telemetryModes
        self.manualAdd = manualAdd
        self.frequencyKilohertz = frequencyKilohertz
        self.bandwidthHertz = bandwidthHertz
        self.spreadingFactor = spreadingFactor
        self.codingRate = codingRate
        self.name = name
    }

    static let empty = SelfInfo(
        type: .unknown, transmitPower: 0, maximumTransmitPower: 0, publicKey: .zero, location: .zero,
        frequencyKilohertz: 0, bandwidthHertz: 0, spreadingFactor: 0, codingRate: 0, name: "")
}

extension SelfInfo: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.nodeType(&type)
        try visitor.integer("transmit_power_dbm", &transmitPower)
        try visitor.integer("maximum_transmit_power_dbm", &maximumTransmitPower)
        try visitor.key(&publicKey)
        try visitor.coordinates(&location)
        try visitor.integer("multi_acks", &multipleAcknowledgements)
        try visitor.integer("location_policy", &locationPolicy)
        try visitor.integer("telemetry_modes", &telemetryModes)
        try visitor.integer("manual_add", &manualAdd)
        try visitor.integer("frequency_khz", &frequencyKilohertz)
        try visitor.integer("bandwidth_hz", &bandwidthHertz)
        try visitor.integer("spreading_factor", &spreadingFactor)
        try visitor.integer("coding_rate", &codingRate)
        try visitor.text("node_name", &name)
    }
}
