// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The counters of a repeater or a room server: the answer to a status request (companion-protocol §1.8, RepeaterStats;
/// firmware examples/simple_repeater and simple_room_server, `MyMesh.h`).
public struct NodeStatus: Sendable, Hashable {
    public var batteryMillivolts: UInt16
    /// Packets that wait to be sent.
    public var transmitQueue: UInt16
    /// dBm.
    public var noiseFloor: Int16
    /// dBm, of the last packet.
    public var lastRSSI: Int16
    public var packetsReceived: UInt32
    public var packetsSent: UInt32
    public var airtimeSeconds: UInt32
    public var uptimeSeconds: UInt32
    public var sentFlood: UInt32
    public var sentDirect: UInt32
    public var receivedFlood: UInt32
    public var receivedDirect: UInt32
    /// Flags of errors that happened.
    public var errorEvents: UInt16
    /// Quarters of a dB, of the last packet.
    public var lastSNRQuarters: Int16
    /// Packets that came directly more than once; in a room server ``posts``.
    public var directDuplicates: UInt16
    /// Packets that came by flooding more than once; in a room server ``postPushes``.
    public var floodDuplicates: UInt16
    /// Absent in the form of 48 bytes: older firmware, and rooms.
    public var receiveAirtimeSeconds: UInt32?
    /// Absent in the form of 52 bytes: firmware before v1.12.
    public var receiveErrors: UInt32?

    /// A room server's posts: it has this in the place of ``directDuplicates``. Nothing in the bytes tells which it is;
    /// the contact's type does.
    public var posts: UInt16 { directDuplicates }
    /// How often a room server has passed on a post: it has this in the place of ``floodDuplicates``.
    public var postPushes: UInt16 { floodDuplicates }

    /// A node that has counted nothing yet.
    public init() {
        batteryMillivolts = 0
        transmitQueue = 0
        noiseFloor = 0
        lastRSSI = 0
        packetsReceived = 0
        packetsSent = 0
        airtimeSeconds = 0
        uptimeSeconds = 0
        sentFlood = 0
        sentDirect = 0
        receivedFlood = 0
        receivedDirect = 0
        errorEvents = 0
        lastSNRQuarters = 0
        directDuplicates = 0
        floodDuplicates = 0
    }

    static let empty = NodeStatus()
}

extension NodeStatus: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.integer("battery_mv", &batteryMillivolts)
        try visitor.integer("transmit_queue", &transmitQueue)
        try visitor.integer("noise_floor_dbm", &noiseFloor)
        try visitor.integer("last_rssi_dbm", &lastRSSI)
        try visitor.integer("packets_received", &packetsReceived)
        try visitor.integer("packets_sent", &packetsSent)
        try visitor.integer("airtime_s", &airtimeSeconds)
        try visitor.integer("uptime_s", &uptimeSeconds)
        try visitor.integer("sent_flood", &sentFlood)
        try visitor.integer("sent_direct", &sentDirect)
        try visitor.integer("received_flood", &receivedFlood)
        try visitor.integer("received_direct", &receivedDirect)
        try visitor.integer("error_events", &errorEvents)
        try visitor.scaled("last_snr_db", &lastSNRQuarters, scale: 4)
        try visitor.integer("direct_duplicates", &directDuplicates)
        try visitor.integer("flood_duplicates", &floodDuplicates)
        try visitor.integer("receive_airtime_s", optional: &receiveAirtimeSeconds)
        try visitor.integer("receive_errors", optional: &receiveErrors)
    }
}
