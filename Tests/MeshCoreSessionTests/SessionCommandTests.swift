// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import Testing

/// One call, the bytes that it must send, and what the radio then says.
struct Exchange: Sendable, CustomTestStringConvertible {
    let command: String
    let replies: [String]
    let call: @Sendable (MeshCoreSession) async throws -> Void

    init(_ command: String, _ replies: String..., call: @escaping @Sendable (MeshCoreSession) async throws -> Void) {
        self.command = command
        self.replies = replies
        self.call = call
    }

    var testDescription: String { String(command.prefix(16)) }
}

/// Every method that is one command: the exact bytes, and a golden reply decoded. The bytes are those of
/// companion-protocol §3.2 and §3.3 (C, R; from MeshCore One v1.3.0 and the firmware's documents) and of meshcore_py
/// 2.3.17 (its `commands` and `reader.py`), as in MeshCompanionTests; those of has_connection are composed from firmware
/// v1.17.1, `MyMesh.cpp`.
struct SessionCommandTests {
    static let key = Golden.keyHex

    static var questions: [Exchange] {
        [
            Exchange("01032020202020206d657368686f7374", CompanionFrame.hex(Golden.selfInfo)) { session in
                same(try await session.refreshSelfInfo().frequencyKilohertz, 869_525)
            },
            Exchange("1603", CompanionFrame.hex(Golden.deviceInfo)) { session in
                same(try await session.refreshDeviceInfo().details?.model, "Board")
            },
            Exchange("05", "0980009265") { session in same(try await session.time(), Golden.date) },
            Exchange("14", "0cfc101600000064000000") { session in
                let storage = BatteryAndStorage.Storage(usedKilobytes: 22, totalKilobytes: 100)
                same(
                    try await session.batteryAndStorage(), BatteryAndStorage(batteryMillivolts: 4_348, storage: storage)
                )
            },
            Exchange("3800", "1800010002000000030004") { session in
                let core = Statistics.Core(batteryMillivolts: 1, uptimeSeconds: 2, errorFlags: 3, queueLength: 4)
                same(try await session.coreStatistics(), core)
            },
            Exchange("3801", "18018affabf70100000002000000") { session in
                let radio = Statistics.Radio(
                    noiseFloor: -118, lastRSSI: -85, lastSignalToNoise: SignalToNoise(quarters: -9), transmitSeconds: 1,
                    receiveSeconds: 2)
                same(try await session.radioStatistics(), radio)
            },
            Exchange("3802", "1802010000000200000003000000040000000500000006000000") { session in
                let packets = Statistics.Packets(
                    received: 1, sent: 2, sentFlood: 3, sentDirect: 4, receivedFlood: 5, receivedDirect: 6)
                same(try await session.packetStatistics(), packets)
            },
            Exchange("27000000", "8b000123456789ab016700ff") { session in
                same(try await session.ownTelemetry().map(\.values), [[25.5]])
            },
            Exchange("28", "156770733a312c6465793a32") { session in
                let variables = [CustomVariable(name: "gps", value: "1"), CustomVariable(name: "dey", value: "2")]
                same(try await session.customVariables(), variables)
            },
            Exchange("3c", "1a689b0600689b060077440d0077440d00") { session in
                let ranges = [(433_000, 433_000), (869_495, 869_495)].map {
                    FrequencyRange(lowestKilohertz: UInt32($0.0), highestKilohertz: UInt32($0.1))
                }
                same(try await session.allowedRepeatFrequencies(), ranges)
            },
            Exchange("2b", "170100000002000000") { session in
                same(try await session.tuning(), Tuning(receiveDelayThousandths: 1, airtimeFactorThousandths: 2))
            },
            Exchange("3b", "190302") { session in
                same(try await session.autoAdd(), AutoAdd(mask: 3, maximumHops: 2))
            },
            Exchange("40", "1c726567696f6e\(zeros(25))000102030405060708090a0b0c0d0e0f") { session in
                same(try await session.defaultScope(), DefaultScope(name: "region", key: Data(0..<16)))
            },
            Exchange("40", "1c") { session in same(try await session.defaultScope(), nil) },
            Exchange("17", "0e\(CompanionFrame.hex(Data(0..<64)))") { session in
                same(try await session.exportPrivateKey(), Data(0..<64))
            },
            Exchange("17", "0f") { session in
                #expect(await code { try await session.exportPrivateKey() } == .radioDisabled)
            },
            Exchange("42766572", "1d76312e3138") { session in same(try await session.runCLICommand("ver"), "v1.18")
            },
            Exchange("11", "0b8100ff3e07") { session in same(try await session.exportContact(), hex("8100ff3e07"))
            },
            Exchange("11\(key)", "0b8100ff3e07") { session in
                same(try await session.exportContact(Golden.key), hex("8100ff3e07"))
            },
            Exchange("1e\(key)", CompanionFrame.hex(Golden.contact(key, "Ann"))) { session in
                same(try await session.contact(Golden.key)?.name, "Ann")
            },
            Exchange("1e\(key)", "0102") { session in same(try await session.contact(Golden.key), nil) },
            Exchange("2a00\(key)", "16030000004201020304") { session in
                let path = try #require(PacketPath(hashSize: 2, hashes: Data([1, 2, 3, 4])))
                same(try await session.advertPath(of: Golden.key), AdvertPath(received: 3, path: path))
            },
            Exchange("2a00\(key)", "0102") { session in same(try await session.advertPath(of: Golden.key), nil) },
            Exchange("1c\(key)", "00") { session in same(try await session.hasConnection(to: Golden.key), true) },
            Exchange("1c\(key)", "0102") { session in same(try await session.hasConnection(to: Golden.key), false) },
            Exchange("1f03", "12035075626c6963\(zeros(26))000102030405060708090a0b0c0d0e0f") { session in
                same(try await session.channel(3), Channel(index: 3, name: "Public", secret: Data(0..<16)))
            },
            Exchange("1f00", "0102") { session in same(try await session.channel(0), nil) },
            Exchange("0a", "070123456789ab02008000926548656c6c6f") { session in
                guard case .text(let message) = try await session.nextMessage() else {
                    throw MeshError(.internalError, "none")
                }
                #expect(message.text == "Hello")
            },
            Exchange("0a", "0a") { session in same(try await session.nextMessage(), nil) },
            Exchange("0a", "1bf7000001ff0201058100ff3e07") { session in
                guard case .data(let data) = try await session.nextMessage() else {
                    throw MeshError(.internalError, "none")
                }
                #expect(data.dataType == 0x0102)
            },
            Exchange("020000800092650123456789ab48656c6c6f", "0601deadbeef88130000") { session in
                let text = OutgoingText(timestamp: Golden.date, recipient: Golden.key.prefix, text: "Hello")
                same(try await session.send(text).timeoutMilliseconds, 5_000)
            },
            Exchange("020100800092650123456789ab737461747573", "06000000000088130000") { session in
                same(try await session.sendCommandLine("status", to: Golden.key).tag, 0)
            },
        ]
    }

    static var orders: [Exchange] {
        [
            Exchange("0680009265", "00") { session in try await session.setTime(Golden.date) },
            Exchange("07", "00") { session in try await session.sendSelfAdvert() },
            Exchange("0701", "00") { session in try await session.sendSelfAdvert(flood: true) },
            Exchange("08546573744e6f6465", "00") { session in try await session.setName("TestNode") },
            Exchange("0e346640023807b4f800000000", "00") { session in
                let place = try #require(Coordinates(latitude: 37.7749, longitude: -122.4194))
                try await session.setLocation(place, altitude: 0)
            },
            Exchange("0cfb", "00") { session in try await session.setTransmitPower(-5) },
            Exchange("0b7bd60d0090d003000b08", "00") { session in
                try await session.setRadio(
                    RadioParameters(
                        frequencyKilohertz: 906_875, bandwidthHertz: 250_000, spreadingFactor: 11, codingRate: 8))
            },
            Exchange("1564000000e8030000", "00") { session in
                try await session.setTuning(Tuning(receiveDelayThousandths: 100, airtimeFactorThousandths: 1_000))
            },
            Exchange("26011901", "00") { session in
                try await session.setOtherParameters(
                    OtherParameters(manualAdd: 1, telemetryModes: 0x19, locationPolicy: 1))
            },
            Exchange("3a1f", "00") { session in try await session.setAutoAdd(AutoAdd(mask: 0x1F)) },
            Exchange("3d0001", "00") { session in try await session.setPathHashMode(1) },
            Exchange("296770733a31", "00") { session in try await session.setCustomVariable("gps", to: "1") },
            Exchange("2540e20100", "00") { session in try await session.setDevicePIN(123_456) },
            Exchange("3601", "00") { session in try await session.setFloodScope(.unscoped) },
            Exchange("3f", "00") { session in try await session.setDefaultScope(nil) },
            Exchange("18\(CompanionFrame.hex(Data(0..<64)))", "00") { session in
                try await session.importPrivateKey(Data(0..<64))
            },
            Exchange("030000800092654869", "00") { session in try await session.sendToChannel("Hi", channel: 0) },
            Exchange("3e01ff0201010203", "00") { session in
                try await session.sendChannelData(
                    OutgoingChannelData(channel: 1, dataType: 0x0102, payload: Data([1, 2, 3])))
            },
            Exchange("19020a0b01020304", "00") { session in
                let path = try #require(PacketPath(hashSize: 1, hashes: Data([0x0A, 0x0B])))
                try await session.sendRawData(OutgoingRawData(path: path, payload: Data([1, 2, 3, 4])))
            },
            Exchange("37800102", "00") { session in try await session.sendControlData(Data([0x80, 1, 2])) },
            Exchange("4102150001", "00") { session in
                try await session.sendRawPacket(OutgoingRawPacket(priority: 2, packet: Data([0x15, 0, 1])))
            },
            Exchange("1d\(key)", "00") { session in try await session.logout(from: Golden.key) },
            Exchange("0f\(key)", "00") { session in try await session.removeContact(Golden.key) },
            Exchange("0d\(key)", "00") { session in try await session.resetPath(of: Golden.key) },
            Exchange("10\(key)", "00") { session in try await session.shareContact(Golden.key) },
            Exchange("12\(CompanionFrame.hex(Data(0..<100)))", "00") { session in
                try await session.importContact(Data(0..<100))
            },
            Exchange("09\(key)0100ff\(zeros(64))416e6e\(zeros(29))80009265", "00") { session in
                try await session.addOrUpdate(
                    ContactUpdate(publicKey: Golden.key, type: .chat, name: "Ann", lastAdvert: Golden.date))
            },
            Exchange("200047656e6572616c\(zeros(25))000102030405060708090a0b0c0d0e0f", "00") { session in
                try await session.setChannel(Channel(index: 0, name: "General", secret: Data(0..<16)))
            },
            Exchange("2005\(zeros(48))", "00") { session in try await session.removeChannel(5) },
            Exchange("337265736574", "00") { session in try await session.factoryReset() },
        ]
    }

    @Test(arguments: questions) func `a question is asked in exactly these bytes, and its answer read`(
        _ exchange: Exchange
    ) async throws {
        try await run(exchange)
    }

    @Test(arguments: orders) func `an order is given in exactly these bytes`(_ exchange: Exchange) async throws {
        try await run(exchange)
    }

    private func run(_ exchange: Exchange) async throws {
        let bench = try await SessionBench.ready { frame, number in
            // The handshake asks some of these once itself.
            let isHandshake = (frame.first == 1 || frame.first == 22) && number == 1
            return isHandshake ? nil : exchange.replies.map { hex($0) }
        }
        try await exchange.call(bench.session)
        #expect(await bench.radio.sent(3)[2...] == [exchange.command])
        await bench.session.stop()
    }

    @Test(arguments: [
        ("01", MeshError.Code.radioRefused), ("0101", .radioUnsupported), ("0102", .radioNotFound),
        ("0103", .radioTableFull), ("0104", .radioBadState), ("0105", .radioFileError), ("0106", .radioIllegalArgument),
        ("0163", .radioRefused),
    ])
    func `what the radio refuses has a code of its own`(_ reply: String, _ expected: MeshError.Code) async throws {
        let bench = try await SessionBench.ready { frame, _ in frame.first == 7 ? [hex(reply)] : nil }
        #expect(await code { try await bench.session.sendSelfAdvert() } == expected)
        await bench.session.stop()
    }

    @Test func `an answer that is too short is no answer`() async throws {
        let bench = try await SessionBench.ready { frame, _ in frame.first == 5 ? [hex("098000")] : nil }
        #expect(await code { try await bench.session.time() } == .radioUnreadable)
        await bench.session.stop()
    }

    @Test func `what has no place in a frame is refused before it is sent`() async throws {
        let bench = try await SessionBench.ready()
        #expect(await code { try await bench.session.setName("") } == .invalidArgument)
        #expect(await code { try await bench.session.setName(String(repeating: "x", count: 32)) } == .invalidArgument)
        #expect(await code { try await bench.session.sendControlData(Data([1])) } == .invalidArgument)
        #expect(await code { try await bench.session.perform(.unknown(code: 15, bytes: Data())) } == .invalidArgument)
        #expect(await code { try await bench.session.sign(Data()) } == .invalidArgument)
        #expect(await bench.radio.sent(2).count == 2)
        await bench.session.stop()
    }

    @Test func `a restart is over when the radio has gone`() async throws {
        let bench = try await SessionBench.ready()
        async let reboot: Void = bench.session.reboot()
        #expect(await bench.radio.sent(3)[2] == "137265626f6f74")
        await bench.clock.step(to: .seconds(2))
        try await reboot
        await bench.session.stop()
    }

    @Test func `a command that this version does not know is sent as it is`() async throws {
        let bench = try await SessionBench.ready { frame, _ in frame.first == 99 ? [hex("770102")] : nil }
        let outcome = try await bench.session.perform(.unknown(code: 99, bytes: Data([1])))
        #expect(outcome.replies == [.unknown(code: 0x77, bytes: Data([1, 2]))])
        #expect(await bench.radio.sent(3)[2] == "6301")
        await bench.session.stop()
    }

    @Test func `a signature is made in one go, whoever else wants one`() async throws {
        // Frames of meshcore_py: sign_start, sign_data, sign_finish.
        let bench = try await SessionBench.ready { frame, _ in
            switch frame.first {
            case 33: [hex("130000200000")]
            case 34: [Golden.ok]
            case 35: [hex("14" + String(repeating: "5a", count: 64))]
            default: nil
            }
        }
        async let first = bench.session.sign(Data(repeating: 1, count: 121))
        async let second = bench.session.sign(Data([2]))
        let signature = Data(repeating: 0x5A, count: 64)
        #expect(try await [first, second] == [signature, signature])
        let long = ["21", "22" + String(repeating: "01", count: 120), "2201", "23"]
        let short = ["21", "2202", "23"]
        let commands = Array(await bench.radio.sent(9)[2...])
        #expect(commands == long + short || commands == short + long)
        await bench.session.stop()
    }

    @Test func `more than a radio can sign is not sent`() async throws {
        let bench = try await SessionBench.ready()
        #expect(await code { try await bench.session.sign(Data(count: 8_193)) } == .invalidArgument)
        #expect(await bench.radio.sent(2).count == 2)
        await bench.session.stop()
    }

    @Test func `a radio that refuses to sign is not asked further`() async throws {
        let bench = try await SessionBench.ready { frame, _ in
            switch frame.first {
            case 33: [hex("130000200000")]
            case 34: [hex("0103")]
            default: nil
            }
        }
        #expect(await code { try await bench.session.sign(Data([1])) } == .radioTableFull)
        #expect(await bench.radio.sent(4)[2...] == ["21", "2201"])
        await bench.session.stop()
    }
}

/// `#expect` with a `try` does not compile in a closure of an array.
func same<Value: Equatable>(
    _ value: Value, _ expected: Value, sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(value == expected, sourceLocation: sourceLocation)
}
