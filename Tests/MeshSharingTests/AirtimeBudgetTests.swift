// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTestSupport
import Testing

@testable import MeshSharing

struct AirtimeBudgetTests {
    // MARK: Time on air

    /// What published calculators say, milliseconds: rfwireless-world.com (LoRaWAN airtime calculator, examples 1 and 2),
    /// the AN1200.13 spreadsheet of The Things Network's community, d-central.tech (its reference check).
    @Test(
        arguments: [
            (7, 125_000, 5, 8, 10, 41.216), (11, 125_000, 5, 8, 10, 577.536), (9, 125_000, 5, 8, 13, 164.864),
            (11, 250_000, 5, 16, 16, 354.304),
        ] as [(Int, Int, Int, Int, Int, Double)])
    func `time on air as others compute it`(
        _ factor: Int, _ bandwidth: Int, _ rate: Int, _ preamble: Int, _ length: Int, _ milliseconds: Double
    ) {
        let modulation = LoRaModulation(
            spreadingFactor: factor, bandwidthHertz: bandwidth, codingRate: rate, preambleSymbols: preamble)
        #expect(abs(modulation.timeOnAir(length) / .milliseconds(1) - milliseconds) < 0.001)
    }

    /// By hand from SX1261/2 data sheet §6.1.4, in symbols: preamble, sync word, eight, and the groups.
    @Test(
        arguments: [
            // SF 11, 250 kHz: 8.192 ms a symbol; 16 + 4.25 + 8 + ⌈(8×37 + 16 − 44 + 8 + 20) / 44⌉ × 5.
            (11, 250_000, 5, 37, 28.25 + 7 * 5, 8.192),
            // SF 8, 62.5 kHz: 4.096 ms; 32 + 4.25 + 8 + ⌈(8×100 + 16 − 32 + 28) / 32⌉ × 8.
            (8, 62_500, 8, 100, 44.25 + 26 * 8, 4.096),
            // SF 11, 125 kHz: 16.384 ms, so with low data rate optimisation; 28.25 + ⌈296 / 36⌉ × 5.
            (11, 125_000, 5, 37, 28.25 + 9 * 5, 16.384),
            // SF 5: 6.25 symbols of sync, and eight bits less.
            (5, 500_000, 6, 10, 32 + 6.25 + 8 + 5 * 6, 0.064),
            (12, 500_000, 5, 0, 28.25, 8.192),
        ] as [(Int, Int, Int, Int, Double, Double)])
    func `time on air by hand`(
        _ factor: Int, _ bandwidth: Int, _ rate: Int, _ length: Int, _ symbols: Double, _ milliseconds: Double
    ) {
        let modulation = LoRaModulation(spreadingFactor: factor, bandwidthHertz: bandwidth, codingRate: rate)
        #expect(abs(modulation.timeOnAir(length) / .milliseconds(1) - symbols * milliseconds) < 0.001)
    }

    @Test func `a radio's info tells how it modulates`() {
        // 869.525 MHz, 250 kHz, SF 11, CR 5 (companion-protocol §3.3, R1).
        #expect(
            LoRaModulation(selfInfo: CacheFrames.selfInfo)
                == LoRaModulation(spreadingFactor: 11, bandwidthHertz: 250_000, codingRate: 5, preambleSymbols: 16))
        #expect(LoRaModulation(selfInfo: CacheFrames.selfInfo.prefix(57)) == nil)
        #expect(LoRaModulation(selfInfo: Data([0x0D]) + CacheFrames.selfInfo.dropFirst()) == nil)
        for (offset, value) in [(56, 4), (56, 13), (57, 4), (57, 9)] as [(Int, UInt8)] {
            var frame = CacheFrames.selfInfo
            frame[offset] = value
            #expect(LoRaModulation(selfInfo: frame) == nil)
        }
        var still = CacheFrames.selfInfo
        still.replaceSubrange(52..<56, with: [0, 0, 0, 0])
        #expect(LoRaModulation(selfInfo: still) == nil)
    }

    // MARK: Packets

    static func command(_ code: UInt8, _ fields: String, _ rest: Int = 0) -> Data {
        Data([code]) + CacheFrames.hex(fields) + Data(repeating: 0x61, count: rest)
    }

    /// Packets from the air (companion-protocol §3.5), as the commands that would send them.
    @Test func `packets from the air have the estimated length`() {
        // A1: "🌲 Tree" said "☁️" to Public; four bytes less, since it is in no region.
        let channel = CacheFrames.hex("150011C3C1354D619BAE9590E4D177DB7EEAF982F5BDCF78005D75157D9535FA90178F785D")
        let said = Self.command(0x03, "00 00 80009265") + Data("☁️".utf8)
        #expect(PacketEstimate.length(of: said, nameLength: "🌲 Tree".utf8.count) == channel.count + 4)
        // A7: a request.
        let request = CacheFrames.hex("0200D1DEB01B2F8B72DD363AA4EF07E0BDA2266A8979")
        #expect(PacketEstimate.length(of: Self.command(0x1B, "", 32)) == request.count + 4)
        // A8: a text, here with a path of four bytes.
        let text = CacheFrames.hex("09046F17C47ED00A13E16AB5B94B1CC2D1A5059C6E5A6253C60D")
        #expect(PacketEstimate.length(of: Self.command(0x02, "00 00 80009265 0123456789ab", 5)) == text.count + 4 - 4)
    }

    /// A command and the length of its packet: what is around, hashes and MAC, and what is encrypted.
    struct Packet {
        var command: Data
        var length: Int

        init(_ code: UInt8, _ fields: String, _ rest: Int, _ length: Int) {
            command = AirtimeBudgetTests.command(code, fields, rest)
            self.length = length
        }
    }

    static let packets: [Packet] = [
        Packet(0x02, "00 00 00000000 0123456789ab", 11, 6 + 4 + 16),  // 16 bytes of plain text
        Packet(0x02, "00 00 00000000 0123456789ab", 12, 6 + 4 + 32),
        Packet(0x02, "00 04 00000000 0123456789ab", 10, 6 + 4 + 32),  // the attempt comes after the text
        Packet(0x03, "00 00 00000000", 1, 6 + 3 + 48),  // 5 + 33 + 1
        Packet(0x03, "00 00 00000000", 160, 6 + 3 + 176),  // cut at 160
        Packet(0x07, "", 0, 2 + 132),
        Packet(0x07, "01", 0, 6 + 132),
        Packet(0x10, "", 32, 6 + 132),
        Packet(0x19, "02 aabb 01020304", 0, 8),
        Packet(0x1A, "", 32, 6 + 35 + 16),
        Packet(0x1A, "", 47, 6 + 35 + 32),
        Packet(0x1B, "", 32, 6 + 4 + 16),
        Packet(0x34, "00", 32, 6 + 4 + 16),
        Packet(0x27, "000000", 32, 6 + 4 + 16),
        Packet(0x32, "", 44, 6 + 4 + 16),
        Packet(0x32, "", 45, 6 + 4 + 32),
        Packet(0x39, "", 44, 6 + 35 + 16),
        Packet(0x24, "01000000 00000000 00 235f3a", 0, 2 + 12),
        Packet(0x37, "80 01", 0, 2 + 2),
        Packet(0x3E, "00 ff 0100 aabb", 0, 6 + 3 + 16),
        Packet(0x3E, "00 02 1122 0100 aabb", 0, 2 + 2 + 3 + 16),
        Packet(0x3E, "00 42 11223344 0100 aabb", 0, 2 + 4 + 3 + 16),
        Packet(0x41, "00 1500aabb", 0, 4),
    ]

    @Test(arguments: packets)
    func `the length of each command's packet`(_ packet: Packet) {
        #expect(PacketEstimate.length(of: packet.command) == packet.length)
    }

    @Test func `the other commands send nothing`() {
        let sending: Set<CommandCode> = [
            .sendTextMessage, .sendChannelText, .sendChannelData, .sendSelfAdvert, .shareContact, .sendLogin,
            .sendAnonymousRequest, .sendBinaryRequest, .sendStatusRequest, .sendPathDiscovery, .sendTelemetryRequest,
            .sendTracePath, .sendRawData, .sendControlData, .sendRawPacket,
        ]
        for code in CommandCode.allCases {
            let command = Data([code.rawValue]) + Data(count: 100)
            #expect((PacketEstimate.length(of: command) != nil) == sending.contains(code), "\(code)")
            for length in 0...3 { _ = PacketEstimate.length(of: command.prefix(length)) }
        }
        #expect(PacketEstimate.length(of: CacheFrames.hex("27 000000")) == nil)
        #expect(PacketEstimate.length(of: Data([0x60])) == nil)
    }

    // MARK: Budget

    @Test func `a full bucket gives its burst, then what comes in`() {
        var budget = AirtimeBudget(percent: 10, burst: .seconds(3))
        for _ in 0..<3 { #expect(budget.take(.seconds(1), now: .zero) == true) }
        #expect(budget.take(.milliseconds(1), now: .zero) == false)
        #expect(budget.wait(for: .seconds(1), now: .zero) == .seconds(10))
        #expect(budget.take(.seconds(1), now: .milliseconds(9_999)) == false)
        #expect(budget.take(.seconds(1), now: .seconds(10)) == true)
        #expect(budget.take(.milliseconds(1), now: .seconds(10)) == false)
    }

    @Test func `it is never fuller than its burst`() {
        var budget = AirtimeBudget(percent: 50, burst: .seconds(2))
        #expect(budget.take(.seconds(1), now: .zero) == true)
        #expect(budget.take(.seconds(2), now: .seconds(100_000)) == true)
        #expect(budget.take(.milliseconds(1), now: .seconds(100_000)) == false)
    }

    @Test func `what costs more than the burst is sent from a full bucket, and paid for`() {
        var budget = AirtimeBudget(percent: 10, burst: .seconds(1))
        #expect(budget.take(.seconds(3), now: .zero) == true)
        #expect(budget.wait(for: .milliseconds(100), now: .zero) == .seconds(21))
        #expect(budget.take(.milliseconds(100), now: .milliseconds(20_999)) == false)
        #expect(budget.take(.milliseconds(100), now: .seconds(21)) == true)
        #expect(budget.take(.seconds(3), now: .seconds(29)) == false)
        #expect(budget.take(.seconds(3), now: .seconds(60)) == true)
    }

    @Test func `no percentage is no limit`() {
        var budget = AirtimeBudget(percent: 0, burst: .zero)
        #expect(budget.isUnlimited)
        for _ in 0..<100 { #expect(budget.take(.seconds(1_000), now: .zero) == true) }
        #expect(budget.wait(for: .seconds(1_000), now: .zero) == .zero)
    }

    @Test func `a clock that stands still or goes back gives nothing`() {
        var budget = AirtimeBudget(percent: 10, burst: .seconds(1))
        #expect(budget.take(.seconds(1), now: .seconds(100)) == true)
        #expect(budget.take(.milliseconds(1), now: .seconds(50)) == false)
        #expect(budget.take(.milliseconds(1), now: .seconds(100)) == false)
        #expect(budget.take(.seconds(1), now: .seconds(110)) == true)
    }

    @Test(arguments: 1...20)
    func `over any time no more is sent than the percentage and one burst`(_ seed: Int) {
        var random = SplitMix(state: UInt64(seed))
        let burst = Duration.seconds(5)
        var budget = AirtimeBudget(percent: 10, burst: burst)
        var (now, sent) = (Duration.zero, Duration.zero)
        for _ in 0..<2_000 {
            now += .milliseconds(Int(random.next() % 3_000))
            let cost = Duration.milliseconds(Int(random.next() % 4_000))
            let wait = budget.wait(for: cost, now: now)
            let isTaken = budget.take(cost, now: now)
            #expect(isTaken == (wait == .zero), "seed \(seed)")
            if isTaken { sent += cost }
            #expect(sent <= burst + now / 10 + .microseconds(1), "seed \(seed)")
        }
        // And it is used.
        #expect(sent >= now / 10 - burst, "seed \(seed)")
    }
}
