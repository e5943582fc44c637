// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

// What the smaller replies carry (companion-protocol §1.6).

/// SENT: the radio has taken a packet.
public struct SentReceipt: Sendable, Hashable {
    /// Whether it goes by flooding.
    public var isFlood: Bool
    /// What the acknowledgement or the answer will carry; 0 if none will come.
    public var tag: UInt32
    /// For how long an answer is worth waiting for, milliseconds.
    public var timeoutMilliseconds: UInt32

    public init(isFlood: Bool, tag: UInt32, timeoutMilliseconds: UInt32) {
        self.isFlood = isFlood
        self.tag = tag
        self.timeoutMilliseconds = timeoutMilliseconds
    }

    static let empty = SentReceipt(isFlood: false, tag: 0, timeoutMilliseconds: 0)
}

extension SentReceipt: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.flag("flood", &isFlood)
        try visitor.tag("tag", &tag)
        try visitor.integer("timeout_ms", &timeoutMilliseconds)
    }
}

/// BATT_AND_STORAGE.
public struct BatteryAndStorage: Sendable, Hashable {
    /// How full the radio's file system is.
    public struct Storage: Sendable, Hashable {
        public var usedKilobytes: UInt32
        public var totalKilobytes: UInt32

        public init(usedKilobytes: UInt32, totalKilobytes: UInt32) {
            self.usedKilobytes = usedKilobytes
            self.totalKilobytes = totalKilobytes
        }
    }

    public var batteryMillivolts: UInt16
    /// Old firmware does not tell.
    public var storage: Storage?

    public init(batteryMillivolts: UInt16, storage: Storage? = nil) {
        self.batteryMillivolts = batteryMillivolts
        self.storage = storage
    }

    static let empty = BatteryAndStorage(batteryMillivolts: 0)
}

extension BatteryAndStorage: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.integer("battery_mv", &batteryMillivolts)
        guard try visitor.begin("storage_used_kb", isSet: storage != nil) else { return storage = nil }
        var found = storage ?? Storage(usedKilobytes: 0, totalKilobytes: 0)
        try visitor.integer("storage_used_kb", &found.usedKilobytes)
        try visitor.integer("storage_total_kb", &found.totalKilobytes)
        storage = found
    }
}

/// ADVERT_PATH: how a node's last advert came in.
public struct AdvertPath: Sendable, Hashable {
    /// By the radio's clock, seconds since 1970.
    public var received: UInt32
    public var path: PacketPath

    public init(received: UInt32, path: PacketPath) {
        self.received = received
        self.path = path
    }

    static let empty = AdvertPath(received: 0, path: .zeroHops)
}

extension AdvertPath: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.integer("received", &received)
        try visitor.path(&path)
    }
}

/// TUNING_PARAMS and SET_TUNING_PARAMS.
public struct Tuning: Sendable, Hashable {
    /// The base of the delay before a packet is taken, in thousandths.
    public var receiveDelayThousandths: UInt32
    /// How many times its airtime the radio is silent after a packet, in thousandths.
    public var airtimeFactorThousandths: UInt32

    public init(receiveDelayThousandths: UInt32, airtimeFactorThousandths: UInt32) {
        self.receiveDelayThousandths = receiveDelayThousandths
        self.airtimeFactorThousandths = airtimeFactorThousandths
    }

    static let empty = Tuning(receiveDelayThousandths: 0, airtimeFactorThousandths: 0)
}

extension Tuning: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.integer("receive_delay_thousandths", &receiveDelayThousandths)
        try visitor.integer("airtime_factor_thousandths", &airtimeFactorThousandths)
    }
}

/// AUTOADD_CONFIG and SET_AUTOADD_CONFIG: whom the radio makes a contact by itself.
public struct AutoAdd: Sendable, Hashable {
    /// 1 overwrite the oldest, 2 chat nodes, 4 repeaters, 8 rooms, 16 sensors.
    public var mask: UInt8
    /// From how far away; since firmware v1.14.
    public var maximumHops: UInt8?

    public init(mask: UInt8, maximumHops: UInt8? = nil) {
        self.mask = mask
        self.maximumHops = maximumHops
    }

    static let empty = AutoAdd(mask: 0)
}

extension AutoAdd: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.integer("mask", &mask)
        try visitor.integer("maximum_hops", optional: &maximumHops)
    }
}

/// One of the frequency ranges where the radio may pass packets on.
public struct FrequencyRange: Sendable, Hashable {
    public var lowestKilohertz: UInt32
    public var highestKilohertz: UInt32

    public init(lowestKilohertz: UInt32, highestKilohertz: UInt32) {
        self.lowestKilohertz = lowestKilohertz
        self.highestKilohertz = highestKilohertz
    }

    static let empty = FrequencyRange(lowestKilohertz: 0, highestKilohertz: 0)
}

extension FrequencyRange: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.integer("lowest_khz", &lowestKilohertz)
        try visitor.integer("highest_khz", &highestKilohertz)
    }
}

/// DEFAULT_FLOOD_SCOPE and SET_DEFAULT_FLOOD_SCOPE: the region of all floods that say no other.
public struct DefaultScope: Sendable, Hashable {
    /// At most 30 bytes.
    public var name: String
    /// 16 bytes.
    public var key: Data

    public init(name: String, key: Data) {
        self.name = name
        self.key = key
    }

    static let empty = DefaultScope(name: "", key: Data())
}

extension DefaultScope: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.fixedText("scope_name", &name, length: 31)
        try visitor.bytes("scope_key", &key, count: 16, secret: true)
    }
}

/// CHANNEL_DATA: a datagram of a channel, handed out like a message.
public struct ReceivedChannelData: Sendable, Hashable {
    public var signalToNoise: SignalToNoise
    public var channel: UInt8
    /// How it came; ``PathByte/none`` if not by flooding.
    public var pathByte: PathByte
    public var dataType: UInt16
    /// At most 255 bytes.
    public var data: Data

    public init(
        signalToNoise: SignalToNoise, channel: UInt8, pathByte: PathByte, dataType: UInt16, data: Data
    ) {
        self.signalToNoise = signalToNoise
        self.channel = channel
        self.pathByte = pathByte
        self.dataType = dataType
        self.data = data
    }

    static let empty = ReceivedChannelData(
        signalToNoise: SignalToNoise(quarters: 0), channel: 0, pathByte: .none, dataType: 0, data: Data())
}

extension ReceivedChannelData: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.signalToNoise(&signalToNoise)
        try visitor.reserved("\0\0")
        try visitor.integer("channel", &channel)
        try visitor.pathByte(&pathByte)
        try visitor.integer("data_type", &dataType)
        var count = UInt8(clamping: data.count)
        try visitor.integer("data_length", &count)
        try visitor.bytes("data", &data, count: Int(count))
    }
}
