// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Made-up people and places: who a simulated radio hears. Pure; the random numbers come from a seed.
///
/// All positions lie around 0° N 0° E, in the sea, where no radio of anyone is.
struct SimulatedWorld {
    private static let people = [
        "Ada", "Bo 🌲", "Cleo", "Dov", "Edda", "Finn", "Grete", "Hal", "Ines", "Jonas", "Kaya", "Lio", "Mira", "Nils",
        "Oona", "Pip", "Quinn", "Rosa", "Sven", "Tove",
    ]
    private static let places = [
        "Buoy North", "Lighthouse", "Old Pier", "Reef East", "Sandbank", "Weather Mast", "Gull Rock", "Long Shoal",
    ]
    private static let smallTalk = [
        "Anyone awake?", "Signal is great up here today", "Batteries at 80 %, sun is out ☀️",
        "Heading down to the pier, back in an hour", "Did you hear the new repeater?", "Test from the boat, 12 km out",
        "Good morning mesh", "Rain is coming in from the west", "Copy you loud and clear",
        "Antenna is up, 3 dB better than before", "Lunch at the lighthouse?", "See you on channel 1",
    ]
    private static let answers = [
        "Copy that", "Got it 👍", "Loud and clear here", "Received, thanks", "OK, talk later", "Nice, 2 hops only",
    ]

    private var random: SeededRandom

    init(seed: UInt64) {
        random = SeededRandom(state: seed)
    }

    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next() >> 24) }
    }

    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    mutating func chance(oneIn count: Int) -> Bool { number(1...count) == 1 }

    /// Signal-to-noise ratio in quarters of a dB, as radios send it.
    mutating func signalToNoise() -> Int8 { Int8(number(-40...48)) }

    mutating func signalStrength() -> Int8 { Int8(number(-118 ... -60)) }

    mutating func smallTalk() -> String { pick(Self.smallTalk) }

    mutating func answer(to text: String) -> String {
        text.lowercased().contains("ping") ? "pong" : pick(Self.answers)
    }

    /// The `index`-th node there is: one repeater, room server or sensor among four people.
    mutating func node(_ index: Int, lastHeard: UInt32) -> SimulatedContact {
        let kind: SimulatedContact.Kind =
            switch index % 8 {
            case 2: .repeater
            case 5: .roomServer
            case 7: index % 16 == 7 ? .sensor : .repeater
            default: .chat
            }
        let names = kind == .chat ? Self.people : Self.places
        let round = index / names.count
        let hops = number(0...4)
        return SimulatedContact(
            publicKey: bytes(32), kind: kind,
            // 7 has no factor in common with 20 people or 8 places, so names repeat only round by round.
            name: names[index * 7 % names.count] + (round == 0 ? "" : " \(round + 1)"),
            path: hops == 4 ? nil : bytes(hops), lastAdvert: lastHeard, latitude: Int32(number(-400_000...400_000)),
            longitude: Int32(number(-400_000...400_000)), lastModified: lastHeard)
    }

    private mutating func pick(_ list: [String]) -> String { list[number(0...list.count - 1)] }
}

/// A seeded generator (Steele, Lea, Flood: SplitMix64, OOPSLA 2014).
struct SeededRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
