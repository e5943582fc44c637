// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// STATS: the radio's own counters, in one of three forms (companion-protocol §1.6).
public enum Statistics: Sendable, Hashable {
    case core(Core)
    case radio(Radio)
    case packets(Packets)
    /// A form of a later firmware.
    case unknown(kind: UInt8, bytes: Data)

    /// Form 0.
    public struct Core: Sendable, Hashable {
        public var batteryMillivolts: UInt16
        public var uptimeSeconds: UInt32
        /// Flags of errors that happened (`_err_flags`).
        public var errorFlags: UInt16
        /// Packets that wait to be sent.
        public var queueLength: UInt8

        public init(batteryMillivolts: UInt16, uptimeSeconds: UInt32, errorFlags: UInt16, queueLength: UInt8) {
            self.batteryMillivolts = batteryMillivolts
            self.uptimeSeconds = uptimeSeconds
            self.errorFlags = errorFlags
            self.queueLength = queueLength
        }
    }

    /// Form 1.
    public struct Radio: Sendable, Hashable {
        /// dBm.
        public var noiseFloor: Int16
        /// dBm, of the last packet.
        public var lastRSSI: Int8
        public var lastSignalToNoise: SignalToNoise
        public var transmitSeconds: UInt32
        public var receiveSeconds: UInt32

        public init(
            noiseFloor: Int16, lastRSSI: Int8, lastSignalToNoise: SignalToNoise, transmitSeconds: UInt32,
            receiveSeconds: UInt32
        ) {
            self.noiseFloor = noiseFloor
            self.lastRSSI = lastRSSI
            self.lastSignalToNoise = lastSignalToNoise
            self.transmitSeconds = transmitSeconds
            self.receiveSeconds = receiveSeconds
        }
    }

    /// Form 2.
    public struct Packets: Sendable, Hashable {
        public var received: UInt32
        public var sent: UInt32
        public var sentFlood: UInt32
        public var sentDirect: UInt32
        public var receivedFlood: UInt32
        public var receivedDirect: UInt32
        /// Absent in the form of 26 bytes.
        public var receiveErrors: UInt32?

        public init(
            received: UInt32, sent: UInt32, sentFlood: UInt32, sentDirect: UInt32, receivedFlood: UInt32,
            receivedDirect: UInt32, receiveErrors: UInt32? = nil
        ) {
            self.received = received
            self.sent = sent
            self.sentFlood = sentFlood
            self.sentDirect = sentDirect
            self.receivedFlood = receivedFlood
            self.receivedDirect = receivedDirect
            self.receiveErrors = receiveErrors
        }
    }

    /// The byte by which GET_STATS asks for this form.
    public var kind: UInt8 {
        switch self {
        case .core: 0
        case .radio: 1
        case .packets: 2
        case .unknown(let kind, _): kind
        }
    }

    /// No form has this kind, so the first byte that is read decides.
    static let empty = Statistics.unknown(kind: 0xFF, bytes: Data())

    /// A form with nothing counted yet.
    private static func prototype(_ kind: UInt8) -> Statistics {
        switch kind {
        case 0: .core(Core(batteryMillivolts: 0, uptimeSeconds: 0, errorFlags: 0, queueLength: 0))
        case 1:
            .radio(
                Radio(
                    noiseFloor: 0, lastRSSI: 0, lastSignalToNoise: SignalToNoise(quarters: 0), transmitSeconds: 0,
                    receiveSeconds: 0))
        case 2:
            .packets(
                Packets(received: 0, sent: 0, sentFlood: 0, sentDirect: 0, receivedFlood: 0, receivedDirect: 0))
        default: .unknown(kind: kind, bytes: Data())
        }
    }
}

extension Statistics: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        var kind = self.kind
        try visitor.integer("stats_type", &kind)
        if kind != self.kind { self = Self.prototype(kind) }
        switch self {
        case .core(var core):
            try visitor.integer("battery_mv", &core.batteryMillivolts)
            try visitor.integer("uptime_s", &core.uptimeSeconds)
            try visitor.integer("error_flags", &core.errorFlags)
            try visitor.integer("queue_length", &core.queueLength)
            self = .core(core)
        case .radio(var radio):
            try visitor.integer("noise_floor_dbm", &radio.noiseFloor)
            try visitor.integer("last_rssi_dbm", &radio.lastRSSI)
            try visitor.signalToNoise(&radio.lastSignalToNoise, as: "last_snr_db")
            try visitor.integer("transmit_s", &radio.transmitSeconds)
            try visitor.integer("receive_s", &radio.receiveSeconds)
            self = .radio(radio)
        case .packets(var packets):
            try visitor.integer("received", &packets.received)
            try visitor.integer("sent", &packets.sent)
            try visitor.integer("sent_flood", &packets.sentFlood)
            try visitor.integer("sent_direct", &packets.sentDirect)
            try visitor.integer("received_flood", &packets.receivedFlood)
            try visitor.integer("received_direct", &packets.receivedDirect)
            try visitor.integer("receive_errors", optional: &packets.receiveErrors)
            self = .packets(packets)
        case .unknown(_, var bytes):
            try visitor.rest("bytes", &bytes)
            self = .unknown(kind: kind, bytes: bytes)
        }
    }
}
