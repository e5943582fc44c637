// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshMockTransport
import MeshTestSupport
import MeshWire
import Testing

/// What firmware has once for everybody (companion-protocol §1.9), and what other nodes answer. Time is virtual.
struct SimulatedRadioStateTests {
    private func radio(_ adjust: (inout SimulatedRadioSettings) -> Void = { _ in }) -> SimulatedRadio {
        var settings = SimulatedRadioSettings(
            contacts: 16, advertInterval: .zero, messageInterval: .zero, rxLogInterval: .zero, answerDelay: .zero,
            reply: false)
        adjust(&settings)
        return SimulatedRadio(settings, now: .zero, clock: 1_704_067_200)
    }

    private func frames(_ outputs: [SimulatedRadio.Output]) -> [[UInt8]] {
        outputs.compactMap { if case .sendFrame(let frame) = $0 { frame } else { nil } }
    }

    private func ask(_ radio: inout SimulatedRadio, _ command: [UInt8], now: Duration = .zero) -> [[UInt8]] {
        frames(radio.commandReceived(command, now: now))
    }

    /// All that comes until nothing is planned any more.
    private func rest(_ radio: inout SimulatedRadio) -> [[UInt8]] {
        var all: [[UInt8]] = []
        while let deadline = radio.nextDeadline { all += frames(radio.deadlineReached(now: deadline)) }
        return all
    }

    /// Keys of the contacts of one type: 1 people, 2 repeaters, 3 room servers.
    private func keys(_ radio: inout SimulatedRadio, type: UInt8) -> [[UInt8]] {
        let list = ask(&radio, [4])
        return list.filter { $0[0] == 3 && $0[33] == type }.map { Array($0[1..<33]) }
    }

    private let appStart: [UInt8] = [1, 0, 0, 0, 0, 0, 0, 0]

    // MARK: Messages

    @Test func `messages are laid out for the version known when they came`() {
        var radio = radio { $0.waiting = 2 }
        _ = ask(&radio, [22, 3])
        #expect(ask(&radio, [41] + Array("messages:2".utf8)) == [[0], [0x83], [0x83]])
        let codes = (0..<5).map { _ in ask(&radio, [10])[0][0] }
        #expect(codes == [0x07, 0x08, 0x10, 0x11, 0x0A])
    }

    @Test func `a message is handed out once, to whoever asks`() {
        var radio = radio { $0.waiting = 3 }
        let texts = (0..<3).map { _ in ask(&radio, [10])[0] }
        #expect(Set(texts).count == 3)
        radio.clientLeft()
        #expect(ask(&radio, appStart)[0][0] == 5)
        #expect(ask(&radio, [10]) == [[0x0A]])
    }

    @Test func `the version stays when the client goes, and a restart forgets it`() {
        var radio = radio()
        _ = ask(&radio, [22, 3])
        radio.clientLeft()
        _ = ask(&radio, [41] + Array("messages:1".utf8))
        // The first such message comes from a contact, the second on a channel.
        #expect(ask(&radio, [10])[0][0] == 0x10)
        #expect(radio.commandReceived([19] + Array("reboot".utf8), now: .zero) == [.dropLink])
        radio.clientLeft()
        _ = ask(&radio, [41] + Array("messages:1".utf8))
        #expect(ask(&radio, [10])[0][0] == 0x08)
    }

    @Test func `the same text at the same time has the same acknowledgement, whoever it is for`() {
        var radio = radio()
        let people = keys(&radio, type: 1)
        func acknowledgement(_ person: Int, attempt: UInt8, _ text: String) -> [UInt8] {
            let sent = ask(&radio, [2, 0, attempt, 1, 2, 3, 4] + people[person][..<6] + Array(text.utf8))[0]
            return Array(sent[2..<6])
        }
        let first = acknowledgement(0, attempt: 0, "Hi")
        #expect(acknowledgement(1, attempt: 0, "Hi") == first)
        #expect(acknowledgement(0, attempt: 1, "Hi") != first)
        #expect(acknowledgement(0, attempt: 0, "Ho") != first)
        #expect(rest(&radio).filter { $0[0] == 0x82 && Array($0[1..<5]) == first }.count == 2)
    }

    // MARK: The contact list

    @Test func `a second contact list is refused while one is under way`() {
        var radio = radio { $0.contactDelay = .milliseconds(1) }
        #expect(ask(&radio, [4]) == [[2, 16, 0, 0, 0]])
        #expect(ask(&radio, [4], now: .milliseconds(3)).contains([1, 4]))
        // Other answers come between the rows.
        #expect(ask(&radio, [5], now: .milliseconds(5)).map { $0[0] } == [3, 9, 3])
        let others = rest(&radio)
        #expect(others.filter { $0[0] == 3 }.count == 11)
        #expect(others.last?[0] == 4)
        #expect(ask(&radio, [4], now: .seconds(1)) == [[2, 16, 0, 0, 0]])
    }

    @Test func `a new APP_START ends a contact list without its last frame`() {
        var radio = radio { $0.contactDelay = .milliseconds(1) }
        _ = ask(&radio, [4])
        #expect(ask(&radio, appStart, now: .milliseconds(2)).last?[0] == 5)
        #expect(rest(&radio).isEmpty)
        #expect(ask(&radio, [4], now: .seconds(1)).first?[0] == 2)
    }

    // MARK: Requests

    @Test func `requests are answered by the node asked, after their receipt`() {
        var radio = radio()
        let repeater = keys(&radio, type: 2)[0]
        let prefix = repeater[..<6]
        for (command, push, length) in [
            ([26] + repeater + Array("password".utf8), [0x85, 1] + prefix, 14),
            ([26] + repeater + Array("hello".utf8), [0x85, 0] + prefix, 14),
            ([27] + repeater, [0x87, 0] + prefix, 64),
            ([39, 0, 0, 0] + repeater, [0x8B, 0] + prefix, 12),
            ([52, 0] + repeater, [0x8D, 0] + prefix, 10),
        ] as [([UInt8], [UInt8], Int)] {
            let sent = ask(&radio, command)
            #expect(sent.count == 1 && sent[0].count == 10 && sent[0][0] == 6, "\(command[0])")
            let answer = rest(&radio)
            #expect(answer.count == 1 && answer[0].count >= length, "\(command[0]): \(answer)")
            #expect(answer[0].starts(with: push), "\(command[0]): \(answer)")
        }
        for type: UInt8 in [1, 3, 5, 7] {
            // As an administrator, whom the access list (5) needs.
            _ = ask(&radio, [26] + repeater + Array("password".utf8))
            _ = rest(&radio)
            let sent = ask(&radio, [50] + repeater + [type])[0]
            let answer = rest(&radio)
            #expect(answer.count == 1 && answer[0].starts(with: [0x8C, 0] + sent[2..<6]), "\(type)")
        }
        for type: UInt8 in [1, 2, 3] {
            let sent = ask(&radio, [57] + repeater + [type, 0])[0]
            #expect(rest(&radio).first?.starts(with: [0x8C, 0] + sent[2..<6]) == true, "\(type)")
        }
    }

    @Test func `a second request silences the first`() {
        var radio = radio()
        let repeaters = keys(&radio, type: 2)
        #expect(ask(&radio, [26] + repeaters[0] + Array("password".utf8))[0][0] == 6)
        #expect(ask(&radio, [27] + repeaters[1])[0][0] == 6)
        let answers = rest(&radio)
        #expect(answers.map { $0[0] } == [0x87])
        #expect(answers[0][2..<8] == repeaters[1][..<6])
    }

    @Test func `a trace and the radio's own telemetry silence nobody`() {
        var radio = radio()
        let repeaters = keys(&radio, type: 2)
        _ = ask(&radio, [27] + repeaters[0])
        #expect(ask(&radio, [39, 0, 0, 0])[0][0] == 0x8B)
        let hops = [repeaters[0][0], repeaters[1][0]]
        let sent = ask(&radio, [36, 1, 2, 3, 4, 9, 9, 9, 9, 0] + hops)
        #expect(sent[0][..<6] == [6, 0, 1, 2, 3, 4])
        let answers = rest(&radio)
        #expect(Set(answers.map { $0[0] }) == [0x87, 0x89])
        let trace = answers.first { $0[0] == 0x89 } ?? []
        #expect(trace.starts(with: [0x89, 0, 2, 0, 1, 2, 3, 4, 9, 9, 9, 9] + hops))
        #expect(trace.count == 14 + 3)
        #expect(ask(&radio, [36, 1, 2, 3, 4, 0, 0, 0, 0, 1, 7]) == [[1, 6]])
        #expect(ask(&radio, [36, 1, 2, 3, 4, 0, 0, 0, 0, 0]) == [[1, 1]])
    }

    @Test func `a wrong password and people are not answered`() {
        var radio = radio()
        let repeater = keys(&radio, type: 2)[0]
        #expect(ask(&radio, [26] + repeater + Array("guess".utf8))[0][0] == 6)
        #expect(ask(&radio, [28] + repeater) == [[1, 2]])
        #expect(rest(&radio).isEmpty)
        let person = keys(&radio, type: 1)[0]
        #expect(ask(&radio, [27] + person)[0][0] == 6)
        #expect(rest(&radio).isEmpty)
        #expect(ask(&radio, [27] + Array(repeating: 9, count: 32)) == [[1, 2]])
        _ = ask(&radio, [26] + repeater)
        #expect(ask(&radio, [28] + repeater) == [[0]])
        #expect(ask(&radio, [29] + repeater) == [[0]])
        #expect(ask(&radio, [28] + repeater) == [[1, 2]])
    }

    @Test func `a discovery request is answered by nodes of the types asked for`() {
        var radio = radio()
        #expect(ask(&radio, [55, 0x81, 1 << 2, 1, 2, 3, 4]) == [[0]])
        let answers = rest(&radio)
        #expect(answers.count == 2)
        #expect(answers.allSatisfy { $0[0] == 0x8E && $0[4] == 0x92 && $0[6..<10] == [1, 2, 3, 4] && $0.count == 18 })
        #expect(ask(&radio, [55, 0x01, 4]) == [[1, 1]])
    }

    // The first has an advert with a name that is longer than a frame.
    @Test(arguments: [9_057_048_556_754_102_294, UInt64.random(in: 0 ... .max)])
    func `whatever comes is answered in valid layouts`(seed: UInt64) {
        var random = SplitMix(state: seed)
        var radio = radio { $0.waiting = 8 }
        var known: [UInt8] = Array(repeating: 0, count: 32)
        for number in 0..<20_000 {
            var command = (0..<Int.random(in: 1...300, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            command[0] = .random(in: 0...70, using: &random)
            // Now and then about a contact that is there.
            if Bool.random(using: &random), command.count > 34 {
                let place = [1, 2, 4].randomElement(using: &random) ?? 1
                command.replaceSubrange(
                    place..<min(place + 32, command.count), with: known.prefix(command.count - place))
            }
            let now = Duration.milliseconds(number * 10)
            for frame in ask(&radio, command, now: now) {
                #expect(
                    frame.count <= 176 && CompanionLayout.isPlausible(frame.span.bytes),
                    "seed \(seed): \(command) gave \(frame)")
                if frame[0] == 3 { known = Array(frame[1..<33]) }
            }
        }
    }

    // MARK: Signing, scope, keys

    @Test func `a signature is of all that came since the start`() {
        var radio = radio()
        #expect(ask(&radio, [34, 1]) == [[1, 4]])
        #expect(ask(&radio, [35]) == [[1, 4]])
        func signature(_ parts: [[UInt8]]) -> [UInt8] {
            #expect(ask(&radio, [33]) == [[0x13, 0, 0, 0x20, 0, 0]])
            for part in parts { #expect(ask(&radio, [34] + part) == [[0]]) }
            return ask(&radio, [35])[0]
        }
        let whole = signature([[1, 2, 3, 4]])
        #expect(whole.count == 65 && whole[0] == 0x14)
        #expect(signature([[1, 2], [3, 4]]) == whole)
        #expect(signature([[1, 2], [3]]) != whole)
        _ = ask(&radio, [33])
        for _ in 0..<64 { #expect(ask(&radio, [34] + Array(repeating: 0, count: 128)) == [[0]]) }
        #expect(ask(&radio, [34, 0]) == [[1, 3]])
    }

    @Test func `there is one flood scope, until a restart`() {
        var radio = radio()
        let key = (1...16).map { UInt8($0) }
        #expect(ask(&radio, [54, 0] + key) == [[0]])
        #expect(radio.floodScope == .key(key))
        #expect(ask(&radio, [54, 1]) == [[0]])
        #expect(radio.floodScope == .none)
        #expect(ask(&radio, [54, 2]) == [[1, 1]])
        #expect(ask(&radio, [54, 0]) == [[0]])
        #expect(radio.floodScope == .standard)
        _ = ask(&radio, [54, 1])
        _ = radio.commandReceived([51] + Array("reset".utf8), now: .zero)
        #expect(radio.floodScope == .standard)
    }

    @Test func `the default scope is kept`() {
        var radio = radio()
        #expect(ask(&radio, [64]) == [[0x1C]])
        let scope = Array("#harbour".utf8) + Array(repeating: 0, count: 23) + (1...16).map { UInt8($0) }
        #expect(ask(&radio, [63] + scope) == [[0]])
        #expect(ask(&radio, [64]) == [[0x1C] + scope])
        #expect(ask(&radio, [63]) == [[0]])
        #expect(ask(&radio, [64]) == [[0x1C]])
    }

    @Test func `a private key goes out and in, and the public key follows it`() {
        var (radio, other) = (radio(), radio { $0.seed = 2 })
        let key = ask(&radio, [23])[0]
        #expect(key.count == 65 && key[0] == 0x0E)
        let old = ask(&other, appStart)[0][4..<36]
        #expect(ask(&other, [24] + key[1...]) == [[0]])
        #expect(ask(&other, [23]) == [key])
        #expect(ask(&other, appStart)[0][4..<36] != old)
        #expect(ask(&other, [24, 1]) == [[1, 1]])
    }

    @Test func `a contact's card makes it known elsewhere`() {
        var (radio, other) = (radio(), radio { $0.contacts = 0 })
        let key = keys(&radio, type: 2)[0]
        let card = Array(ask(&radio, [17] + key)[0].dropFirst())
        #expect(card.count > 98)
        #expect(ask(&other, [18] + card) == [[0], [0x80] + key])
        #expect(ask(&other, [30] + key)[0][100..<132] == ask(&radio, [30] + key)[0][100..<132])
        #expect(ask(&radio, [17])[0].count > 99)
        #expect(ask(&other, [18] + card.prefix(97)) == [[1, 1]])
        #expect(ask(&other, [18] + Array(repeating: 0, count: 120)) == [[1, 6]])
    }

    // MARK: Custom variables

    @Test func `custom variables are told and set`() {
        var radio = radio()
        #expect(ask(&radio, [40]) == [[0x15] + Array("gps:0".utf8)])
        #expect(ask(&radio, [41] + Array("gps:1".utf8)) == [[0]])
        #expect(ask(&radio, [40]) == [[0x15] + Array("gps:1".utf8)])
        for wrong in ["tide:1", "messages:0", "messages:257", "silent:x", "away:-1", "gps", "::::"] {
            #expect(ask(&radio, [41] + Array(wrong.utf8)) == [[1, 6]], "\(wrong)")
        }
    }

    @Test func `a silent radio says late what it has to say`() {
        var radio = radio()
        #expect(ask(&radio, [41] + Array("silent:5000".utf8)) == [[0]])
        #expect(ask(&radio, [5], now: .seconds(1)) == [])
        #expect(ask(&radio, [20], now: .seconds(4)) == [])
        #expect(frames(radio.deadlineReached(now: .seconds(5))).map { $0[0] } == [9, 0x0C])
        #expect(ask(&radio, [5], now: .seconds(6)).count == 1)
    }

    @Test func `a stray answer comes by itself`() {
        var radio = radio()
        #expect(ask(&radio, [41] + Array("stray:20".utf8)) == [[0]])
        #expect(radio.nextDeadline == .milliseconds(20))
        #expect(frames(radio.deadlineReached(now: .milliseconds(20))) == [[0]])
    }

    @Test func `a radio out of range drops the link and keeps its messages`() {
        var radio = radio { $0.waiting = 1 }
        #expect(
            radio.commandReceived([41] + Array("away:1500".utf8), now: .seconds(1)) == [.sendFrame([0]), .dropLink])
        radio.clientLeft()
        #expect(radio.awayUntil == .milliseconds(2_500))
        #expect(ask(&radio, [10], now: .seconds(3))[0][0] == 0x07)
    }
}
