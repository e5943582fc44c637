// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import Testing

/// Requests to other nodes. Layouts: companion-protocol §1.5 to §1.8; the commands' bytes are those of MeshCore One (C15,
/// C16) and meshcore_py 2.3.17.
struct SessionRequestTests {
    static let key = Golden.keyHex
    static let node = "0123456789ab"
    static let sent = "0600deadbeef88130000"

    static var requests: [Exchange] {
        [
            Exchange("1a\(key)736563726574", sent, "8501\(node)605d5a6a0302") { session in
                let login = try await session.login(to: Golden.key, password: "secret")
                // P5 of the reference: administrator, 1784307040, access 3, level 2.
                #expect(login.isAdministrator)
                #expect(login.serverTime == 1_784_307_040)
                #expect(login.firmwareLevel == 2)
            },
            Exchange("1a\(key)736563726574", sent, "8600\(node)") { session in
                #expect(
                    await code { try await session.login(to: Golden.key, password: "secret") } == .authenticationFailed)
            },
            Exchange("1b\(key)", sent, "8700\(node)681003008affabffe8030000f4010000100e000080510100\(zeros(28))") {
                session in
                let status = try await session.status(of: Golden.key)
                #expect(status.batteryMillivolts == 4_200)
                #expect(status.noiseFloor == -118)
                #expect(status.packetsReceived == 1_000)
            },
            Exchange("27000000\(key)", sent, "8b00\(node)016700ff") { session in
                same(try await session.telemetry(of: Golden.key).map(\.values), [[25.5]])
            },
            Exchange("3400\(key)", sent, "8d00\(node)42010203040105") { session in
                let discovery = try await session.discoverPath(to: Golden.key)
                #expect(discovery.outward.hops == [Data([1, 2]), Data([3, 4])])
                #expect(discovery.inward.hops == [Data([5])])
            },
            Exchange("32\(key)04100e0000000000000000", sent, "8c00deadbeef80009265016700fa010400ff") { session in
                let (clock, ranges) = try await session.minMaxAverage(of: Golden.key, from: 3_600)
                #expect(clock == Golden.date)
                #expect(ranges.map(\.minimum) == [[250]])
                #expect(ranges.map(\.maximum) == [[260]])
                #expect(ranges.map(\.average) == [[255]])
            },
            Exchange("32\(key)050000", sent, "8c00deadbeef\(node)03\(zeros(9))") { session in
                let entry = BinaryAnswer.AccessEntry(node: Golden.key.prefix, permissions: 3)
                same(try await session.accessList(of: Golden.key), [entry])
            },
            Exchange("32\(key)07", sent, "8c00deadbeef76310a4e6f64650a416e6e") { session in
                let owner = BinaryAnswer.OwnerInfo(firmware: "v1", nodeName: "Node", owner: "Ann")
                same(try await session.owner(of: Golden.key), owner)
            },
            Exchange("32\(key)03", sent, "8c00deadbeef016700ff") { session in
                let answer = try await session.binaryRequest(.telemetry(inverseMask: nil), to: Golden.key)
                guard case .telemetry(let readings) = answer else { throw MeshError(.internalError, "\(answer)") }
                #expect(readings.map(\.values) == [[25.5]])
            },
            Exchange("39\(key)0100", sent, "8c00deadbeef80009265612c62") { session in
                let answer = try await session.anonymousRequest(.regions(replyPath: .zeroHops), to: Golden.key)
                #expect(answer == .regions(clock: Golden.date, "a,b"))
            },
            // The tag is what chance says, 7 here.
            Exchange("2407000000010000000101020304", "06000700000088130000", "89000401070000000100000001020304f7f7f7") {
                session in
                let result = try await session.trace(Data([1, 2, 3, 4]), hashSize: 2, authCode: 1)
                #expect(result.signalToNoise.map(\.decibels) == [-2.25, -2.25])
                #expect(result.finalSignalToNoise.decibels == -2.25)
            },
        ]
    }

    @Test(arguments: requests) func `a request is one call that returns the answer`(_ exchange: Exchange) async throws {
        let bench = try await SessionBench.ready { frame, number in
            (frame.first == 1 || frame.first == 22) && number == 1 ? nil : exchange.replies.map { hex($0) }
        }
        try await exchange.call(bench.session)
        #expect(await bench.radio.sent(3)[2...] == [exchange.command])
        await bench.session.stop()
    }

    @Test(arguments: requests.filter { $0.replies.last?.hasPrefix("86") == false })
    func `a request to a node that the radio does not know fails at once`(
        _ exchange: Exchange
    ) async throws {
        let bench = try await SessionBench.ready { frame, number in
            (frame.first == 1 || frame.first == 22) && number == 1 ? nil : [Golden.notFound]
        }
        #expect(await code { try await exchange.call(bench.session) } == .radioNotFound)
        await bench.session.stop()
    }

    @Test func `two requests at once take turns`() async throws {
        let bench = try await SessionBench.ready { frame, _ in
            frame.first == 26 || frame.first == 27 ? [hex(Self.sent)] : nil
        }
        async let login = bench.session.login(to: Golden.key, password: "secret")
        #expect(await bench.radio.sent(3)[2].hasPrefix("1a"))
        async let status = bench.session.status(of: Golden.otherKey)
        // Other commands go meanwhile; the second request does not.
        #expect(try await bench.session.time() == Golden.date)
        #expect(await bench.radio.sent(4)[3] == "05")
        await bench.radio.say(hex("8501" + Self.node))
        #expect(try await login.isAdministrator)
        #expect(await bench.radio.sent(5)[4] == "1b" + Golden.otherKeyHex)
        await bench.radio.say(hex("8700abababababab" + "6810" + zeros(46)))
        #expect(try await status.batteryMillivolts == 4_200)
        await bench.session.stop()
    }

    @Test func `a request that is not answered expires, and the next one goes`() async throws {
        let bench = try await SessionBench.ready { frame, _ in frame.first == 27 ? [hex(Self.sent)] : nil }
        async let lost = code { try await bench.session.status(of: Golden.key) }
        await bench.settled(3)
        // 5000 ms of the receipt, times 1.2, and 500 ms.
        await bench.clock.step(to: .milliseconds(6_500))
        #expect(await lost == .operationTimeout)
        let events = await bench.session.events
        async let next = code { try await bench.session.status(of: Golden.otherKey) }
        await bench.settled(4)
        // The late answer is told, and taken for nobody's.
        await bench.radio.say(hex("8700" + Self.node + "6810" + zeros(46)))
        #expect(await events.first { if case .status = $0 { true } else { false } } != nil)
        await bench.clock.step(to: .milliseconds(13_000))
        #expect(await next == .operationTimeout)
        await bench.session.stop()
    }

    @Test func `a cancelled request occupies the radio until its answer`() async throws {
        let bench = try await SessionBench.ready { frame, _ in frame.first == 27 ? [hex(Self.sent)] : nil }
        let lost = Task { await code { try await bench.session.status(of: Golden.key) } }
        await bench.radio.sent(3)
        lost.cancel()
        #expect(await lost.value == .cancelled)
        async let next = bench.session.status(of: Golden.otherKey)
        #expect(try await bench.session.time() == Golden.date)
        #expect(await bench.radio.sent(4)[3] == "05")
        await bench.radio.say(hex("8700" + Self.node + "6810" + zeros(46)))
        #expect(await bench.radio.sent(5)[4].hasPrefix("1bab"))
        await bench.radio.say(hex("8700abababababab" + "6710" + zeros(46)))
        #expect(try await next.batteryMillivolts == 4_199)
        await bench.session.stop()
    }

    @Test func `a request that is cancelled before its turn does not go`() async throws {
        let bench = try await SessionBench.ready { frame, _ in frame.first == 27 ? [hex(Self.sent)] : nil }
        async let first = bench.session.status(of: Golden.key)
        await bench.radio.sent(3)
        let waiting = Task { await code { try await bench.session.login(to: Golden.key, password: "") } }
        waiting.cancel()
        #expect(await waiting.value == .cancelled)
        await bench.radio.say(hex("8700" + Self.node + "6810" + zeros(46)))
        _ = try await first
        #expect(try await bench.session.time() == Golden.date)
        #expect(await bench.radio.sent(4)[3] == "05")
        await bench.session.stop()
    }

    @Test func `a request whose receipt is lost lets the next one go`() async throws {
        let bench = try await SessionBench.ready { frame, number in
            frame.first == 27
                ? (number == 1 ? [] : [hex(Self.sent), hex("8700" + Self.node + "6810" + zeros(46))]) : nil
        }
        async let lost = code { try await bench.session.status(of: Golden.key) }
        await bench.settled(3)
        await bench.clock.step(to: .seconds(5))
        #expect(await lost == .operationTimeout)
        async let next = bench.session.status(of: Golden.key)
        await bench.clock.step(to: .milliseconds(5_100))
        #expect(try await next.batteryMillivolts == 4_200)
        await bench.session.stop()
    }

    @Test func `traces go side by side and find their callers by their tags`() async throws {
        let bench = try await SessionBench.ready { frame, _ in frame.first == 36 ? [hex("06000000000088130000")] : nil }
        async let first = bench.session.trace(Data([1]))
        #expect(await bench.radio.sent(3)[2] == "2407000000" + "00000000" + "00" + "01")
        async let second = bench.session.trace(Data([2]))
        // Chance says 7 each time, so the second takes the next.
        #expect(await bench.radio.sent(4)[3] == "2408000000" + "00000000" + "00" + "02")
        await bench.radio.say(
            hex("890001000800000000000000" + "02" + "0408"), hex("890001000700000000000000" + "01" + "0c10"))
        #expect(try await first.hashes == Data([1]))
        #expect(try await second.hashes == Data([2]))
        await bench.session.stop()
    }

    @Test func `a trace that does not come back ends by the receipt's time`() async throws {
        let bench = try await SessionBench.ready { frame, _ in frame.first == 36 ? [hex("06000700000088130000")] : nil }
        async let lost = code { try await bench.session.trace(Data([1])) }
        await bench.settled(3)
        await bench.clock.step(to: .milliseconds(6_500))
        #expect(await lost == .operationTimeout)
        #expect(await code { try await bench.session.trace(Data([1, 2, 3]), hashSize: 3) } == .invalidArgument)
        #expect(await code { try await bench.session.trace(Data()) } == .invalidArgument)
        await bench.session.stop()
    }

    @Test func `neighbours are asked for page by page`() async throws {
        func row(_ number: Int) -> String { "0000000\(number)" + "0a000000" + "04" }
        let pages = ["0300" + "0200" + row(1) + row(2), "0300" + "0100" + row(3)]
        let bench = try await SessionBench.ready { frame, number in
            frame.first == 50 ? [hex(Self.sent), hex("8c00deadbeef" + pages[min(number, 2) - 1])] : nil
        }
        let neighbours = try await bench.session.neighbours(of: Golden.key, order: 2)
        #expect(neighbours.map { $0.keyPrefix.last } == [1, 2, 3])
        #expect(neighbours.map(\.signalToNoise.decibels) == [1, 1, 1])
        // Version, count, offset, order, prefix length, nonce.
        let request = "32" + Self.key + "06" + "00" + "ff"
        #expect(
            await bench.radio.sent(4)[2...] == [
                request + "0000" + "02" + "04" + "07000000", request + "0200" + "02" + "04" + "07000000",
            ])
        await bench.session.stop()
    }

    @Test func `a repeater that promises more neighbours than it has is not asked for ever`() async throws {
        let bench = try await SessionBench.ready { frame, _ in
            frame.first == 50 ? [hex(Self.sent), hex("8c00deadbeef" + "ffff" + "0000")] : nil
        }
        #expect(try await bench.session.neighbours(of: Golden.key).isEmpty)
        await bench.session.stop()
    }
}
