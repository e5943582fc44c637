// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshWire

/// A companion radio without hardware: commands in, frames out (companion-protocol §1.5–1.7; firmware v1.17.1, protocol
/// version 13). Pure: time comes in as a parameter, random numbers from the seed.
///
/// A machine of one state with a schedule: every answer, push and repeating event is an entry with its time. A radio
/// never speaks before it is spoken to, so pushes begin with the first command. The protocol leaves the order of answers
/// and pushes open; here it is that of their times.
///
/// What firmware has once for everybody is here once, too: one queue of messages, which a read empties, laid out for the
/// version that was told when they arrived; one contact list at a time; one pending request, forgotten at the next; one
/// buffer for signatures; one flood scope. Custom variables of its own make it do what radios do when they are unwell
/// (`SimulatedRadio+Variables.swift`).
///
/// There is no cryptography in here: acknowledgement codes, signatures and keys are hashes that anybody could make.
public struct SimulatedRadio {
    /// What comes out.
    public enum Output: Hashable, Sendable {
        /// A frame to the client.
        case sendFrame([UInt8])
        /// The radio restarts: the link drops.
        case dropLink
    }

    /// What happens at a time.
    enum Event {
        case answer([UInt8])
        case push([UInt8])
        /// The next row of the contact list that is under way, or its end.
        case contactRow
        /// A node's answer to the request of that number.
        case requestAnswered(Int, frame: [UInt8])
        case restart
        /// Out of range for so long.
        case away(Duration)
        /// Nothing is answered or pushed for so long.
        case silence(Duration)
        case delivered(acknowledgement: [UInt8], tripTime: UInt32)
        /// A message from a contact arrives.
        case directMessage(from: [UInt8], type: UInt8, text: String)
        case channelMessage(channel: UInt8, text: String)
        case advertDue
        case messageDue
        case packetHeard
    }

    /// One channel slot.
    struct Channel {
        var name: String
        var secret: [UInt8]
    }

    /// A message nobody has fetched yet, laid out when it arrived.
    struct QueuedMessage {
        var frame: [UInt8]
        var isChannel: Bool
    }

    /// A contact list as it goes out, row by row.
    struct ContactListing {
        var rows: ArraySlice<[UInt8]>
        var end: [UInt8]
    }

    /// Which region a flood is for: SET_FLOOD_SCOPE (companion-protocol §1.5).
    public enum FloodScope: Hashable, Sendable {
        /// The default scope, if there is one.
        case standard
        /// None, whatever the default is.
        case none
        case key([UInt8])
    }

    private struct Entry {
        var due: Duration
        var event: Event
    }

    /// Most companion builds (OFFLINE_QUEUE_SIZE, companion-protocol §1.9).
    static let messageQueueLimit = 256

    let settings: SimulatedRadioSettings
    var world: SimulatedWorld
    var publicKey: [UInt8]
    var privateKey: [UInt8]
    var name: String
    var latitude: Int32 = 1_000
    var longitude: Int32 = -2_000
    /// EU/UK narrow preset of the official app: 869.618 MHz, 62.5 kHz, SF8, CR8.
    var frequency: UInt32 = 869_618
    var bandwidth: UInt32 = 62_500
    var spreadingFactor: UInt8 = 8
    var codingRate: UInt8 = 8
    var transmitPower: Int8 = 22
    /// multi_acks, loc_policy, telemetry, manual_add: SELF_INFO's order.
    var otherParameters: [UInt8] = [0, 0, 0, 0]
    var tuning: (rxDelay: UInt32, airtime: UInt32) = (0, 1_000)
    var autoAdd: [UInt8] = [0, 0]
    var pathHashMode: UInt8 = 0
    var devicePIN: UInt32 = 0
    var contacts: [SimulatedContact] = []
    var channels: [UInt8: Channel] = [:]
    var messages: [QueuedMessage] = []
    /// The contact list that is under way.
    var listing: ContactListing?
    /// How many requests there were, and the one whose answer is waited for.
    var requests = 0
    var pendingRequest: Int?
    /// Whom it has logged in to, and whether as an administrator.
    var logins: [[UInt8]: Bool] = [:]
    /// What is to be signed; nil before SIGN_START.
    var signing: [UInt8]?
    /// Which region following floods are for.
    public internal(set) var floodScope: FloodScope = .standard
    var defaultScope: [UInt8] = []
    var variables: [(name: String, value: String)] = [("gps", "0")]
    /// What the command at hand leads to, and how long after its answer.
    private var consequences: [(event: Event, delay: Duration)] = []
    /// How many messages have arrived on demand.
    var arrivals = 0
    /// Until when it does not speak; until when it cannot be reached.
    var silentUntil: Duration = .zero
    public internal(set) var awayUntil: Duration = .zero
    /// What the newest DEVICE_QUERY said; 0 at boot (companion-protocol §1.4).
    var appVersion: UInt8 = 0
    var packets = (received: UInt32(0), sent: UInt32(0))
    /// The radio's clock: this at ``bootTime``.
    var clockAtBoot: UInt32
    let bootTime: Duration
    private var nextNode: Int
    private var schedule: [Entry] = []
    private var isAwake = false

    /// `now` is monotonic time, `clock` the radio's idea of the time of day in seconds since 1970.
    public init(_ settings: SimulatedRadioSettings, now: Duration, clock: UInt32) {
        self.settings = settings
        var world = SimulatedWorld(seed: settings.seed)
        publicKey = world.bytes(32)
        privateKey = SimulatedHash.bytes(64, of: publicKey)
        name = settings.name
        clockAtBoot = clock
        bootTime = now
        for index in 0..<settings.contacts {
            contacts.append(world.node(index, lastHeard: clock &- UInt32(world.number(60...86_400))))
        }
        nextNode = settings.contacts
        let names = ["Public", "Harbour", "Fishing", "Workshop", "Family", "Regatta", "Weather", "Tools"]
        // The public channel's well-known key (companion-protocol §1.8).
        let publicSecret: [UInt8] = [
            0x8B, 0x33, 0x87, 0xE9, 0xC5, 0xCD, 0xEA, 0x6A, 0xC9, 0xE5, 0xED, 0xBA, 0xA1, 0x15, 0xCD, 0x72,
        ]
        for index in 0..<settings.channels {
            channels[UInt8(index)] = Channel(name: names[index], secret: index == 0 ? publicSecret : world.bytes(16))
        }
        self.world = world
        for _ in 0..<settings.waiting { _ = messageArrives(now: now) }
    }

    /// When ``deadlineReached(now:)`` is due.
    public var nextDeadline: Duration? { schedule.first?.due }

    /// Takes one frame from the client; returns what is due at once.
    public mutating func commandReceived(_ command: [UInt8], now: Duration) -> [Output] {
        if !isAwake {
            isAwake = true
            plan(.advertDue, every: settings.advertInterval, from: now)
            plan(.messageDue, every: settings.messageInterval, from: now)
            plan(.packetHeard, every: settings.rxLogInterval, from: now)
        }
        for frame in answers(to: command, now: now) { plan(.answer(frame), at: now + settings.answerDelay) }
        for each in consequences { plan(each.event, at: now + settings.answerDelay + each.delay) }
        consequences = []
        return deadlineReached(now: now)
    }

    /// Returns what is due. Early calls return nothing.
    public mutating func deadlineReached(now: Duration) -> [Output] {
        var outputs: [Output] = []
        while let entry = schedule.first, entry.due <= now {
            schedule.removeFirst()
            outputs += happen(entry.event, at: entry.due)
        }
        return outputs
    }

    /// The client has gone: answers under way are lost, and pushes wait for the next one.
    public mutating func clientLeft() {
        isAwake = false
        listing = nil
        schedule.removeAll { entry in
            switch entry.event {
            case .directMessage, .channelMessage: false
            case .answer, .push, .contactRow, .requestAnswered, .restart, .away, .silence, .delivered, .advertDue,
                .messageDue, .packetHeard:
                true
            }
        }
    }

    /// The radio's clock.
    func clock(_ now: Duration) -> UInt32 {
        clockAtBoot &+ UInt32(clamping: (now - bootTime).components.seconds)
    }

    /// Puts an event into the schedule, behind those of the same time.
    mutating func plan(_ event: Event, at due: Duration) {
        let due = max(due, silentUntil)
        let index = schedule.lastIndex { $0.due <= due }.map { $0 + 1 } ?? 0
        schedule.insert(Entry(due: due, event: event), at: index)
    }

    /// Puts an event into the schedule that comes behind the answer to the command at hand.
    mutating func follow(with event: Event, in delay: Duration = .zero) {
        consequences.append((event, delay))
    }

    /// Forgets what is left of the contact list.
    mutating func abandonListing() {
        listing = nil
        schedule.removeAll { if case .contactRow = $0.event { true } else { false } }
    }

    /// Forgets what a restart forgets.
    mutating func restart() {
        abandonListing()
        messages = []
        appVersion = 0
        pendingRequest = nil
        logins = [:]
        signing = nil
        floodScope = .standard
    }

    private mutating func plan(_ event: Event, every interval: Duration, from now: Duration) {
        if interval > .zero { plan(event, at: now + interval) }
    }

    private mutating func happen(_ event: Event, at now: Duration) -> [Output] {
        switch event {
        case .answer(let frame), .push(let frame): return [.sendFrame(frame)]
        case .contactRow: return nextContactRow(now: now)
        case .requestAnswered(let request, let frame):
            guard request == pendingRequest else { return [] }
            pendingRequest = nil
            return [.sendFrame(frame)]
        case .restart: return [.dropLink]
        case .away(let duration):
            awayUntil = now + duration
            return [.dropLink]
        case .silence(let duration):
            silentUntil = now + duration
            return []
        case .delivered(let acknowledgement, let tripTime):
            return [.sendFrame(SimulatedFrame.sendConfirmed(acknowledgement, tripTime: tripTime))]
        case .directMessage(let prefix, let type, let text):
            return directMessageArrived(from: prefix, type: type, text: text, now: now)
        case .channelMessage(let channel, let text):
            return channelMessageArrived(on: channel, text: text, now: now)
        case .advertDue:
            plan(.advertDue, every: settings.advertInterval, from: now)
            return advertHeard(now: now)
        case .messageDue:
            plan(.messageDue, every: settings.messageInterval, from: now)
            return someoneTalks(now: now)
        case .packetHeard:
            plan(.packetHeard, every: settings.rxLogInterval, from: now)
            packets.received += 1
            return [.sendFrame(SimulatedFrame.packetHeard(&world))]
        }
    }

    /// A node that was not heard before.
    mutating func newNode(now: Duration) -> SimulatedContact {
        defer { nextNode += 1 }
        return world.node(nextNode, lastHeard: clock(now))
    }

    /// Keeps a message until it is fetched and says so. A full queue drops the oldest channel message, else the new
    /// message (companion-protocol §1.9).
    mutating func enqueue(_ message: QueuedMessage) -> [Output] {
        if messages.count >= Self.messageQueueLimit {
            guard let oldest = messages.firstIndex(where: \.isChannel) else { return [] }
            messages.remove(at: oldest)
        }
        messages.append(message)
        packets.received += 1
        return isAwake ? [.sendFrame([SimulatedFrame.messageWaiting])] : []
    }
}
