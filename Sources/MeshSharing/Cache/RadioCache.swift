// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion

/// What is known of the radio, so that clients' reads need not go to it. Pure: it is told every reply and push, and
/// says what may be answered from memory.
///
/// Replies are kept as they came, byte for byte. A reply is *sure* from when it was given until something may have
/// changed it; then it is *stale*: good enough while the radio is away, else it must be asked for again.
///
/// | read | answered with | stale |
/// |---|---|---|
/// | APP_START | SELF_INFO | after 8, 11, 12, 14, 38, 41; after 10 min, for a GPS moves it |
/// | DEVICE_QUERY | DEVICE_INFO, whatever version the client told | after 11, 37, 61 |
/// | GET_CHANNEL | CHANNEL_INFO of that number, or its `01 02` | forgotten after 32 of that number |
/// | GET_CUSTOM_VARS | CUSTOM_VARS | after 41 |
/// | GET_TUNING_PARAMS | TUNING_PARAMS | after 21 |
/// | GET_AUTOADD_CONFIG | AUTOADD_CONFIG | after 58 |
/// | GET_DEFAULT_FLOOD_SCOPE | DEFAULT_FLOOD_SCOPE | after 63 |
/// | GET_ALLOWED_REPEAT_FREQ | ALLOWED_REPEAT_FREQ | – |
/// | GET_BATT_AND_STORAGE | BATT_AND_STORAGE | after 60 s |
/// | GET_DEVICE_TIME | CURR_TIME, computed | after 10 min (``RadioClock``) |
/// | GET_CONTACT_BY_KEY | the row; `01 02` for an unknown key if the list is valid | with the contacts |
/// | GET_CONTACTS | ``contactList(since:)`` | after pushes 80 and 81, after 9, 18, 57 |
///
/// Any other command goes to the radio. An error is kept if it will come again: `01 01`, the firmware has no such
/// command, and `01 02` for a channel.
///
/// When the link is lost everything is stale and errors are forgotten. If SELF_INFO has another key than before, the
/// radio is another one, or was reset: everything else is forgotten.
struct RadioCache: Sendable {
    /// What a client's read needs.
    enum Lookup: Sendable, Equatable {
        /// The whole reply.
        case answer([Data])
        /// A reply that may be out of date: ask the radio if it is there.
        case stale([Data])
        /// Nothing is known: ask the radio.
        case unknown
        /// Never answered from here.
        case uncached
    }

    struct Reply: Sendable {
        var frame: Data
        var at: Duration
        var isSure = true
        var isError: Bool { frame.first == ReplyCode.error.rawValue }
    }

    /// How long SELF_INFO is taken as sure: a radio with GPS moves without being told to (`sensors.node_lat`).
    static let selfInfoAge: Duration = .seconds(600)

    private let batteryAge: Duration
    var replies: [CachedRead: Reply] = [:]
    var clock = RadioClock()
    var contacts = ContactCache()

    /// Nothing is known. `batteryAge`: for how long the battery's state is good.
    init(batteryAge: Duration = .seconds(60)) {
        self.batteryAge = batteryAge
    }

    // MARK: Answers

    /// What this command needs.
    func lookup(_ command: Data, now: Duration) -> Lookup {
        if let read = CachedRead(command: command) {
            guard let reply = replies[read] else { return .unknown }
            return reply.isSure && now - reply.at < age(read) ? .answer([reply.frame]) : .stale([reply.frame])
        }
        switch command.first.flatMap(CommandCode.init) {
        case .getTime:
            if let time = clock.time(now: now) { return .answer([Self.time(time)]) }
            return clock.guess(now: now).map { .stale([Self.time($0)]) } ?? .unknown
        case .getContactByKey:
            guard let key = Self.key(in: command, at: 1) else { return .uncached }
            switch contacts.find(key) {
            case .row(let frame, let isSure): return isSure ? .answer([frame]) : .stale([frame])
            case .missing: return .answer([CompanionFrame.error(.notFound)])
            case .unknown: return .unknown
            }
        default:
            return .uncached
        }
    }

    /// The radio's own name, settings and place as it told them last.
    var selfInfo: SelfInfo? {
        guard let frame = replies[.selfInfo]?.frame, case .selfInfo(let info)? = try? CompanionReply(decoding: frame)
        else { return nil }
        return info
    }

    /// How the radio sends, as it told it last.
    var modulation: LoRaModulation? { replies[.selfInfo].flatMap { LoRaModulation(selfInfo: $0.frame) } }

    /// The radio's time, seconds since 1970; nil if it was not told on this link in the last ten minutes.
    func currentTime(now: Duration) -> UInt32? { clock.time(now: now) }

    private func age(_ read: CachedRead) -> Duration {
        switch read {
        case .battery: batteryAge
        case .selfInfo: Self.selfInfoAge
        case .deviceInfo, .customVariables, .tuning, .autoAdd, .allowedRepeatFrequencies, .defaultScope, .channel:
            // Until something changes it.
            .seconds(Int64.max)
        }
    }

    private static func time(_ time: UInt32) -> Data {
        Data([ReplyCode.currentTime.rawValue]) + Data.field32(time)
    }

    /// The public key at this place in a frame.
    static func key(in frame: Data, at offset: Int) -> PublicKey? {
        PublicKey(frame.dropFirst(offset).prefix(PublicKey.length))
    }

    // MARK: Facts

    /// The radio answered a command, whoever gave it. What other clients shall be told: pushes that the radio would
    /// send to an app if somebody else had made the change.
    mutating func replied(_ reply: Data, to command: Data, now: Duration) -> [Data] {
        if reply.first == ReplyCode.error.rawValue { return refused(reply, command, now: now) }
        if let read = CachedRead(command: command) {
            if CachedRead(reply: reply) == read { keep(reply, read, now: now) }
            return []
        }
        switch command.first.flatMap(CommandCode.init) {
        case .getTime:
            if reply.first == ReplyCode.currentTime.rawValue { observed(reply, now: now) }
            return []
        case .getContactByKey:
            if reply.first == ReplyCode.contact.rawValue { observed(reply, now: now) }
            return []
        default:
            return wrote(command, now: now)
        }
    }

    private mutating func refused(_ reply: Data, _ command: Data, now: Duration) -> [Data] {
        let error = reply.field8(at: 1)
        if let read = CachedRead(command: command) {
            if read.isLasting(error) { replies[read] = Reply(frame: Data(reply), at: now) }
            return []
        }
        // A contact that was known is gone: somebody else has removed it.
        if command.first == CommandCode.getContactByKey.rawValue, error == CompanionErrorCode.notFound.rawValue,
            let key = Self.key(in: command, at: 1), contacts[key] != nil
        {
            contacts.removed(key)
            return [Self.push(.contactDeleted, key)]
        }
        return []
    }

    /// A reply that nobody here asked for: the answer to a command that came in by another interface of the radio
    /// (companion-protocol §1.3). What it tells is as good as what was asked for; an OK means that something was
    /// changed and does not say what.
    mutating func observed(_ reply: Data, now: Duration) {
        if let read = CachedRead(reply: reply) { return keep(reply, read, now: now) }
        switch reply.first.flatMap(ReplyCode.init) {
        case .ok: doubtEverything()
        case .currentTime:
            if let time = reply.field32(at: 1), clock.told(time, now: now) { contacts.clockJumped() }
        case .contact:
            if let row = ContactRow(reply) { contacts.put(row) }
        default: break
        }
    }

    /// The radio sent a push. Adverts and paths make the contacts stale, also of a contact that is not known: it was
    /// just added. A deletion takes the row out. NEW_ADVERT is of a node that the radio does not keep.
    mutating func pushReceived(_ push: Data, now: Duration) {
        switch push.first.flatMap(PushCode.init) {
        case .advert, .pathUpdated:
            if let key = Self.key(in: push, at: 1) { contacts.changed(key) }
        case .contactDeleted:
            if let key = Self.key(in: push, at: 1) { contacts.removed(key) }
        case .newAdvert, .contactsFull, .sendConfirmed, .messageWaiting, .rawData, .loginSuccess, .loginFailed,
            .statusResponse, .receivedPacketLog, .trace, .telemetryResponse, .binaryResponse, .pathDiscovery,
            .controlData, nil:
            break
        }
    }

    /// The link is gone. What is known is stale until it is asked for again, on the next link.
    mutating func linkLost() {
        replies = replies.filter { !$0.value.isError }
        for read in replies.keys { doubt(read) }
        clock.linkLost()
        contacts.linkLost()
    }

    // MARK: Keeping

    private mutating func keep(_ reply: Data, _ read: CachedRead, now: Duration) {
        if read == .selfInfo, let before = replies[.selfInfo], !before.isError,
            Self.key(in: before.frame, at: 4) != Self.key(in: reply, at: 4)
        {
            forgetEverything()
        }
        // A slice would keep the whole of what it was cut from.
        replies[read] = Reply(frame: Data(reply), at: now)
    }

    /// A reply may be out of date.
    mutating func doubt(_ read: CachedRead) {
        replies[read]?.isSure = false
    }

    /// Anything may have been changed.
    mutating func doubtEverything() {
        for read in replies.keys { doubt(read) }
        clock.doubt()
        contacts.doubt()
    }

    /// Nothing is known any more.
    mutating func forgetEverything() {
        replies = [:]
        clock = RadioClock()
        contacts.forget()
    }
}
