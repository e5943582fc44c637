// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import Testing

/// Channels, one by one and several at once.
struct SessionChannelTests {
    static func info(_ index: UInt8) -> Data {
        let name = index == 39 ? Data() : Data("Channel \(index)".utf8)
        let secret = Data(repeating: index == 39 ? 0 : index, count: 16)
        return Data([0x12, index]) + name + Data(repeating: 0, count: 32 - name.count) + secret
    }

    /// The radio tells 40 channels, the last of which is not set up.
    static let expected = (0..<39).map { UInt8($0) }

    @Test func `channels are asked for four at once where the link allows it`() async throws {
        // The radio answers a batch only when its last command has come.
        let bench = try await SessionBench.ready(pipelines: true) { frame, number in
            guard frame.first == 31 else { return nil }
            guard number.isMultiple(of: 4) else { return [] }
            let last = frame[frame.startIndex + 1]
            return (last - 3...last).map { Self.info($0) }
        }
        let channels = try await bench.session.channels()
        #expect(channels.map(\.index) == Self.expected)
        #expect(channels[7].name == "Channel 7")
        #expect(await bench.radio.sent(42)[2...].map { $0 } == (0..<40).map { CompanionFrame.hex(Data([31, $0])) })
        #expect(await bench.session.counters.unaskedReplies == 0)
        await bench.session.stop()
    }

    @Test func `a batch's replies are told apart by the index in them`() async throws {
        let bench = try await SessionBench.ready(pipelines: true) { frame, number in
            guard frame.first == 31 else { return nil }
            guard number.isMultiple(of: 4) else { return [] }
            let last = frame[frame.startIndex + 1]
            return [last - 1, last - 3, last - 2, last].map { Self.info($0) }
        }
        let channels = try await bench.session.channels()
        #expect(channels.map(\.index) == Self.expected)
        #expect(channels.allSatisfy { $0.name == "Channel \($0.index)" })
        await bench.session.stop()
    }

    @Test func `what a batch leaves out is asked for again`() async throws {
        let bench = try await SessionBench.ready(pipelines: true) { frame, number in
            guard frame.first == 31 else { return nil }
            // The third command is lost on the way.
            return number == 3 ? [] : [Self.info(frame[frame.startIndex + 1])]
        }
        #expect(try await bench.session.channels().map(\.index) == Self.expected)
        #expect(await bench.radio.sent(43).last == "1f02")
        await bench.session.stop()
    }

    @Test func `a batch whose last command is lost is asked for again`() async throws {
        let bench = try await SessionBench.ready(pipelines: true) { frame, number in
            guard frame.first == 31 else { return nil }
            return number <= 4 ? [] : [Self.info(frame[frame.startIndex + 1])]
        }
        async let channels = bench.session.channels()
        await bench.settled(6)
        await bench.clock.step(to: .seconds(5), .milliseconds(5_100))
        #expect(try await channels.map(\.index) == Self.expected)
        await bench.session.stop()
    }

    @Test func `other calls take their turn between the batches`() async throws {
        let bench = try await SessionBench.ready(pipelines: true) { frame, _ in
            frame.first == 31 ? [Self.info(frame[frame.startIndex + 1])] : nil
        }
        async let channels = bench.session.channels()
        async let time = bench.session.time()
        #expect(try await time == Golden.date)
        #expect(try await channels.count == 39)
        await bench.session.stop()
    }

    @Test func `a link that takes one command at a time is asked one by one`() async throws {
        let bench = try await SessionBench.ready { frame, _ in
            frame.first == 31 ? [Self.info(frame[frame.startIndex + 1])] : nil
        }
        #expect(try await bench.session.channels().map(\.index) == Self.expected)
        await bench.session.stop()
    }

    @Test func `a radio that does not tell how many channels it has is asked until it knows no more`() async throws {
        let bench = try await SessionBench.ready(pipelines: true) { frame, _ in
            switch frame.first {
            case 22: [hex("0101")]
            case 31: frame.last! < 8 ? [Self.info(frame.last!)] : [Golden.notFound]
            default: nil
            }
        }
        #expect(try await bench.session.channels().count == 8)
        #expect(await bench.radio.sent(11).last == "1f08")
        await bench.session.stop()
    }
}
