// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshMockTransport
import MeshTransportAPI
import MeshWire
import Testing

/// Layouts are those of companion-protocol §1.5–1.7.
struct SimulatedRadioTests {
    private static let start = UInt32(1_704_067_200)

    private func quiet(_ adjust: (inout SimulatedRadioSettings) -> Void = { _ in }) -> SimulatedRadio {
        var settings = SimulatedRadioSettings(
            advertInterval: .zero, messageInterval: .zero, rxLogInterval: .zero, answerDelay: .zero)
        adjust(&settings)
        return SimulatedRadio(settings, now: .zero, clock: Self.start)
    }

    private func frames(_ outputs: [SimulatedRadio.Output]) -> [[UInt8]] {
        outputs.compactMap { if case .sendFrame(let frame) = $0 { frame } else { nil } }
    }

    private func ask(_ radio: inout SimulatedRadio, _ command: [UInt8], now: Duration = .zero) -> [[UInt8]] {
        frames(radio.commandReceived(command, now: now))
    }

    private func integer(_ bytes: some Sequence<UInt8>) -> UInt32 {
        bytes.enumerated().reduce(0) { $0 | UInt32($1.element) << (8 * UInt32($1.offset)) }
    }

    @Test func `the handshake is answered`() {
        var radio = quiet { $0.name = "Grüße" }
        let selfInfo = ask(&radio, [1, 3, 0, 0, 0, 0, 0, 0] + Array("mccli".utf8))[0]
        #expect(selfInfo[..<4] == [5, 1, 22, 22])
        #expect(integer(selfInfo[48..<52]) == 869_618)
        #expect(integer(selfInfo[52..<56]) == 62_500)
        #expect(Array(selfInfo[58...]) == Array("Grüße".utf8))
        let deviceInfo = ask(&radio, [22, 3])[0]
        #expect(deviceInfo.count == 82)
        #expect(deviceInfo[..<4] == [0x0D, 13, 175, 40])
    }

    @Test func `time, battery, statistics and settings are answered`() {
        var radio = quiet()
        #expect(ask(&radio, [5], now: .seconds(7)) == [[9, 0x87, 0, 0x92, 0x65]])
        #expect(ask(&radio, [6, 0, 0, 0, 0x70]) == [[0]])
        #expect(ask(&radio, [5]) == [[9, 0, 0, 0, 0x70]])
        #expect(ask(&radio, [6, 0, 0, 0, 1]) == [[1, 6]])
        #expect(ask(&radio, [20])[0][..<3] == [0x0C, 0xD2, 0x0F])
        #expect([0, 1, 2].map { ask(&radio, [56, $0])[0].count } == [11, 14, 30])
        #expect(ask(&radio, [43])[0].count == 9)
        #expect(ask(&radio, [8] + Array("Neu".utf8)) == [[0]])
        #expect(ask(&radio, [12, 0xF6]) == [[1, 6]])
        #expect(ask(&radio, [14, 0x34, 0x66, 0x40, 2, 0x38, 7, 0xB4, 0xF8, 0, 0, 0, 0]) == [[0]])
        let selfInfo = ask(&radio, [1, 0, 0, 0, 0, 0, 0, 0])[0]
        #expect(selfInfo[36..<44] == [0x34, 0x66, 0x40, 2, 0x38, 7, 0xB4, 0xF8])
        #expect(Array(selfInfo[58...]) == Array("Neu".utf8))
    }

    @Test func `contacts are listed from a time on, strictly`() {
        var radio = quiet { $0.contacts = 9 }
        let all = ask(&radio, [4])
        #expect(all.first == [2, 9, 0, 0, 0])
        #expect(all.count == 11)
        #expect(all[1...9].allSatisfy { $0.count == 148 && $0[0] == 3 })
        let newest = all[1...9].map { integer($0[144...]) }.max() ?? 0
        #expect(all.last == [4] + withUnsafeBytes(of: newest.littleEndian) { Array($0) })
        let since = ask(&radio, [4] + all[10][1...])
        #expect(since == [[2, 9, 0, 0, 0], [4, 0, 0, 0, 0]])
    }

    @Test func `no two contacts have the same name or key`() {
        var radio = quiet { $0.contacts = 350 }
        let rows = ask(&radio, [4])[1...350]
        #expect(Set(rows.map { $0[1..<33] }).count == 350)
        #expect(Set(rows.map { $0[100..<132] }).count == 350)
    }

    @Test func `contacts are read, stored and removed`() {
        var radio = quiet { $0.contacts = 2 }
        let row = ask(&radio, [4])[1]
        let key = Array(row[1..<33])
        #expect(ask(&radio, [30] + key) == [row])
        #expect(ask(&radio, [15] + key) == [[0]])
        #expect(ask(&radio, [30] + key) == [[1, 2]])
        #expect(ask(&radio, [9] + row[1...]) == [[0]])
        #expect(ask(&radio, [30] + key) == [row])
        #expect(ask(&radio, [13] + key) == [[0]])
        #expect(ask(&radio, [30] + key)[0][35] == 0xFF)
        // Without position and time of change.
        #expect(ask(&radio, [9] + Array(repeating: 7, count: 32) + row[33..<136]) == [[0]])
        #expect(ask(&radio, [30] + Array(repeating: 7, count: 32))[0].count == 148)
    }

    @Test func `channels are read and set`() {
        var radio = quiet()
        let general = [0] + Array("General".utf8) + Array(repeating: 0, count: 25) + (0..<16).map { UInt8($0) }
        let publicChannel = ask(&radio, [31, 0])[0]
        #expect(publicChannel.count == 50)
        #expect(publicChannel[34...] == [139, 51, 135, 233, 197, 205, 234, 106, 201, 229, 237, 186, 161, 21, 205, 114])
        #expect(ask(&radio, [32] + general) == [[0]])
        #expect(ask(&radio, [31, 0]) == [[0x12] + general])
        #expect(ask(&radio, [31, 39])[0][2] == 0)
        #expect(ask(&radio, [31, 40]) == [[1, 2]])
        #expect(ask(&radio, [32] + general + Array(repeating: 0, count: 16)) == [[1, 1]])
    }

    @Test func `a message is sent, confirmed and answered`() {
        var radio = quiet { $0.contacts = 1 }
        let prefix = Array(ask(&radio, [4])[1][1..<7])
        _ = ask(&radio, [22, 3])
        let sent = ask(&radio, [2, 0, 0, 0, 0, 0, 0] + prefix + Array("ping".utf8))[0]
        #expect(sent.count == 10)
        #expect(sent[0] == 6)
        let confirmed = next(&radio)
        #expect(confirmed.count == 9)
        #expect(confirmed[..<5] == [0x82] + sent[2..<6])
        #expect(next(&radio) == [0x83])
        let message = ask(&radio, [10], now: radio.nextDeadline ?? .seconds(60))[0]
        #expect(message[0] == 0x10)
        #expect(message[4..<10] == prefix[...])
        #expect(Array(message[16...]) == Array("pong".utf8))
        #expect(ask(&radio, [10]) == [[0x0A]])
        #expect(ask(&radio, [2, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 65]) == [[1, 2]])
    }

    @Test func `an app of version 2 gets messages without signal values`() {
        var radio = quiet()
        #expect(ask(&radio, [3, 0, 0, 0, 0, 0, 0] + Array("Hi".utf8)) == [[0]])
        #expect(next(&radio) == [0x83])
        #expect(ask(&radio, [10], now: .seconds(60))[0][..<2] == [8, 0])
        #expect(ask(&radio, [3, 0, 9, 0, 0, 0, 0, 65]) == [[1, 2]])
        #expect(ask(&radio, [3, 1, 0, 0, 0, 0, 0, 65]) == [[1, 1]])
    }

    @Test func `unknown and short commands are unsupported`() {
        var radio = quiet()
        for code in UInt8.min...UInt8.max {
            let answers = ask(&radio, [code])
            #expect(answers.count >= 1, "\(code)")
        }
        for command: [UInt8] in [[], [99], [66, 65], [15], [30, 1], [2, 0], [1, 2, 3], [19, 1], [32, 0]] {
            #expect(ask(&radio, command) == [[1, 1]], "\(command)")
        }
    }

    @Test func `reboot drops the link and forgets messages`() {
        var radio = quiet()
        #expect(radio.commandReceived([19] + Array("reboot".utf8), now: .zero) == [.dropLink])
    }

    @Test func `nothing is pushed before the first command nor after the client has left`() {
        var radio = SimulatedRadio(SimulatedRadioSettings(), now: .zero, clock: Self.start)
        #expect(radio.nextDeadline == nil)
        _ = radio.commandReceived([5], now: .zero)
        #expect(radio.nextDeadline == .milliseconds(5))
        radio.clientLeft()
        #expect(radio.nextDeadline == nil)
    }

    @Test func `the same seed and commands give the same hour, in valid layouts`() {
        func hour(seed: UInt64) -> [[UInt8]] {
            var settings = SimulatedRadioSettings(seed: seed)
            settings.advertInterval = .seconds(20)
            var radio = SimulatedRadio(settings, now: .zero, clock: Self.start)
            var all = ask(&radio, [22, 3])
            while let deadline = radio.nextDeadline, deadline < .seconds(3_600) {
                let new = frames(radio.deadlineReached(now: deadline))
                all += new
                if new.contains([0x83]) { all += ask(&radio, [10], now: deadline) }
            }
            return all
        }
        let first = hour(seed: 5)
        #expect(first == hour(seed: 5))
        #expect(first != hour(seed: 6))
        #expect(Set(first.map { $0[0] }).isSuperset(of: [0x0D, 0x80, 0x83, 0x88, 0x10, 0x11]))
        for frame in first {
            #expect(CompanionLayout.isPlausible(frame.span.bytes) && frame.count <= 176, "\(frame)")
        }
    }

    @Test func `a transport made by the factory answers on its loop`() async throws {
        let thread = LoopThread()
        let events = ReportedEvents()
        let factory = MockTransportFactory(loop: thread.loop)
        let (values, issues) = factory.check(["name": "Sim", "rx_log_interval": "20ms", "answer_delay": "1ms"])
        #expect(issues == [])
        let transport = try factory.makeTransport(
            TransportSettings(device: "sim", options: values, written: [:], environment: events.environment))
        try await transport.connect()
        var frames = await transport.receivedData.makeAsyncIterator()
        try await transport.send(Data([22, 3]))
        #expect(await frames.next()?.count == 82)
        #expect(await frames.next()?.first == 0x88)
        await transport.disconnect()
        #expect(await frames.next() == nil)
        try await thread.shutDown()
    }

    @Test func `a device's radio outlives its links and serves the newest`() async throws {
        let thread = LoopThread()
        let events = ReportedEvents()
        let factory = MockTransportFactory(loop: thread.loop)
        func link(_ device: String) throws -> any MeshTransport {
            let (values, _) = factory.check(["answer_delay": "0s"])
            return try factory.makeTransport(
                TransportSettings(device: device, options: values, written: [:], environment: events.environment))
        }
        func ask(_ transport: any MeshTransport, _ command: [UInt8]) async throws -> Data? {
            try await transport.send(Data(command))
            for await frame in await transport.receivedData where frame[0] < 0x80 { return frame }
            return nil
        }
        let first = try link("sim")
        try await first.connect()
        #expect(try await ask(first, [8] + Array("Renamed".utf8)) == Data([0]))
        let second = try link("sim")
        try await second.connect()
        #expect(await !first.isConnected)
        #expect(try await ask(second, [1, 0, 0, 0, 0, 0, 0, 0])?.suffix(7) == Data("Renamed".utf8))
        let other = try link("other")
        try await other.connect()
        #expect(try await ask(other, [1, 0, 0, 0, 0, 0, 0, 0])?.suffix(9) == Data("Simulated".utf8))
        try await second.send(Data([41] + Array("away:3600000".utf8)))
        #expect(await !second.isConnected)
        await #expect(throws: MeshError(.connectionFailed, "")) { try await link("sim").connect() }
        await other.disconnect()
        try await thread.shutDown()
    }

    @Test func `a scan shows two devices`() async throws {
        let thread = LoopThread()
        var names: [String] = []
        for try await result in try await MockTransportFactory(loop: thread.loop).scan() {
            names.append(result.name)
            if names.count == 2 { break }
        }
        #expect(names == ["MeshCore-Simulated", "MeshCore-Lighthouse"])
        try await thread.shutDown()
    }

    private func next(_ radio: inout SimulatedRadio) -> [UInt8] {
        while let deadline = radio.nextDeadline {
            if let frame = frames(radio.deadlineReached(now: deadline)).first { return frame }
        }
        return []
    }
}
