// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// What a simulated radio is like. The same settings and commands give the same frames.
public struct SimulatedRadioSettings: Sendable, Hashable {
    public var name: String
    /// All keys, names, texts and signal values come from this.
    public var seed: UInt64
    /// How many contacts it knows at the start, 0...``maximumContacts``.
    public var contacts: Int
    /// How many channels are set up, 0...8; the first is the public one.
    public var channels: Int
    /// Between adverts of other nodes; zero: none.
    public var advertInterval: Duration
    /// Between messages nobody asked for; zero: none.
    public var messageInterval: Duration
    /// Between other nodes' packets that it hears; zero: none.
    public var rxLogInterval: Duration
    /// From a command to its answer.
    public var answerDelay: Duration
    /// From one row of the contact list to the next; commands that come meanwhile are answered in between.
    public var contactDelay: Duration
    /// From something sent to what comes back over the air, at most.
    public var tripTime: Duration
    /// How many messages wait for the first app, laid out for one that has not told its version.
    public var waiting: Int
    /// Whether people answer what they are sent.
    public var reply: Bool
    public var batteryMillivolts: UInt16

    /// What firmware for most boards is built with (MAX_CONTACTS, firmware variants/*/platformio.ini).
    public static let maximumContacts = 350

    public init(
        name: String = "Simulated", seed: UInt64 = 1, contacts: Int = 12, channels: Int = 2,
        advertInterval: Duration = .seconds(30), messageInterval: Duration = .seconds(45),
        rxLogInterval: Duration = .seconds(5), answerDelay: Duration = .milliseconds(5), reply: Bool = true,
        batteryMillivolts: UInt16 = 4_050, contactDelay: Duration = .zero, tripTime: Duration = .milliseconds(1_800),
        waiting: Int = 0
    ) {
        self.name = name
        self.seed = seed
        self.contacts = min(max(contacts, 0), Self.maximumContacts)
        self.channels = min(max(channels, 0), 8)
        self.advertInterval = advertInterval
        self.messageInterval = messageInterval
        self.rxLogInterval = rxLogInterval
        self.answerDelay = answerDelay
        self.contactDelay = contactDelay
        self.tripTime = max(tripTime, .zero)
        self.waiting = min(max(waiting, 0), SimulatedRadio.messageQueueLimit)
        self.reply = reply
        self.batteryMillivolts = batteryMillivolts
    }

    /// The option table of the module.
    public static let options: [OptionSpec] = [
        OptionSpec("name", .string, default: "Simulated", help: "The radio's node name, up to 31 bytes."),
        OptionSpec(
            "seed", .int, default: "1", help: "Keys, names and texts are made from it; the same seed, the same."),
        OptionSpec("contacts", .int, default: "12", help: "How many contacts the radio knows, 0 to 350."),
        OptionSpec("channels", .int, default: "2", help: "How many channels are set up, 0 to 8; the first is public."),
        OptionSpec("advert_interval", .duration, default: "30s", help: "Between adverts of other nodes; 0s: none."),
        OptionSpec(
            "message_interval", .duration, default: "45s", help: "Between messages nobody asked for; 0s: none."),
        OptionSpec(
            "rx_log_interval", .duration, default: "5s", help: "Between packets heard of other nodes; 0s: none."),
        OptionSpec("answer_delay", .duration, default: "5ms", help: "From a command to its answer."),
        OptionSpec("contact_delay", .duration, default: "0s", help: "Between the rows of the contact list."),
        OptionSpec(
            "trip_time", .duration, default: "1800ms", help: "What an answer over the air takes, at most."),
        OptionSpec("waiting", .int, default: "0", help: "How many messages wait at the start, 0 to 256."),
        OptionSpec("reply", .bool, default: "true", help: "Whether contacts answer the messages they are sent."),
        OptionSpec("battery_mv", .int, default: "4050", help: "The battery's voltage in millivolts, 0 to 65535."),
    ]

    /// What the table cannot say about validated options.
    public static func issues(_ options: OptionValues) -> [OptionIssue] {
        var issues: [OptionIssue] = []
        for (name, range) in [
            ("contacts", 0...maximumContacts), ("channels", 0...8), ("battery_mv", 0...65_535), ("seed", 0...Int.max),
            ("waiting", 0...SimulatedRadio.messageQueueLimit),
        ] where !range.contains(options.int(name)) {
            issues.append(
                OptionIssue(
                    option: name,
                    message: "\(name) is \(options.int(name)), outside \(range.lowerBound) to \(range.upperBound)"))
        }
        if options.string("name").utf8.count > 31 {
            issues.append(OptionIssue(option: "name", message: "name is longer than 31 bytes"))
        }
        return issues
    }

    /// Reads options in which ``issues(_:)`` found nothing.
    public init(_ options: OptionValues) {
        self.init(
            name: options.string("name"), seed: UInt64(clamping: options.int("seed")),
            contacts: options.int("contacts"),
            channels: options.int("channels"), advertInterval: options.duration("advert_interval"),
            messageInterval: options.duration("message_interval"), rxLogInterval: options.duration("rx_log_interval"),
            answerDelay: options.duration("answer_delay"), reply: options.bool("reply"),
            batteryMillivolts: UInt16(clamping: options.int("battery_mv")),
            contactDelay: options.duration("contact_delay"), tripTime: options.duration("trip_time"),
            waiting: options.int("waiting"))
    }
}
