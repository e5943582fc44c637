// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import Testing

struct HCIEventTests {
    @Test(arguments: Transcript.names) func `every event of the transcripts has a meaning`(name: String) throws {
        for record in try Transcript(name).records where record.kind == .event {
            let event = try HCIEvent.decode(record.packet.span.bytes)
            if case .other = event { Issue.record("\(record.packet)") }
            // Command Complete goes up to the end of its packet; its start is checked like the others.
            DecoderVerifier { try HCIEvent.decode($0) }.verify(record.packet)
        }
    }

    @Test func `events of a link, as in passkey_sc`() throws {
        let events = try Transcript("passkey_sc").events()
        #expect(events.first == .commandComplete(.reset, parameters: [0], allowance: 1))
        let completes: [ConnectionComplete] = events.compactMap {
            if case .connectionComplete(let event) = $0 { event } else { nil }
        }
        let complete = try #require(completes.first)
        #expect(complete.status == .success && complete.role == .central)
        #expect(complete.peer.isStaticRandom)
        let handle = complete.handle
        #expect(events.contains(.encryptionChange(.success, handle, isEncrypted: true)))
        #expect(events.contains { if case .disconnectionComplete(.success, handle, _) = $0 { true } else { false } })
        #expect(events.contains(.completedPackets([.init(handle: handle, count: 1)])))
        let reports = events.flatMap { event -> [AdvertisingReport] in
            if case .advertisingReports(let reports) = event { reports } else { [] }
        }
        let report = try #require(reports.first)
        #expect(report.address == complete.peer)
    }

    @Test func `both forms of Connection Complete say the same`() throws {
        // The enhanced one as in the transcript with `--enhanced`, the legacy one of another recording.
        for name in ["acl_27x2_fragments", "passkey_sc"] {
            let events = try Transcript(name).events()
            let complete = try #require(
                events.compactMap { if case .connectionComplete(let event) = $0 { event } else { nil } }.first)
            #expect(complete.parameters.interval > 0)
            #expect(complete.peer.kind == .random)
        }
        // Vol 4 Part E §7.7.65.10, both versions, with an identity and both private addresses.
        let fields = hex("00 4000 00 03 665544332211 0100000000c0 0200000000a0 1800 0000 f401 00")
        for (subevent, tail) in [(UInt8(0x0A), [UInt8]()), (0x29, hex("ff ffff"))] {
            let body = [subevent] + fields + tail
            let event = try HCIEvent.decode(([0x3E, UInt8(body.count)] + body).span.bytes)
            let expected = ConnectionComplete(
                status: .success, handle: ConnectionHandle(0x40), role: .central,
                peer: DeviceAddress(0x1122_3344_5566, .random), isPeerResolved: true,
                localPrivateAddress: DeviceAddress(0xC000_0000_0001, .random),
                peerPrivateAddress: DeviceAddress(0xA000_0000_0002, .random),
                parameters: .init(interval: 24, latency: 0, supervisionTimeout: 500))
            #expect(event == .connectionComplete(expected))
            #expect(expected.peerOnAir == DeviceAddress(0xA000_0000_0002, .random))
            #expect(expected.ownOnAir(DeviceAddress(1, .public)) == DeviceAddress(0xC000_0000_0001, .random))
            let settings = PairingStateMachine.Configuration(
                expected, own: DeviceAddress(1, .public), capability: .keyboardOnly, requiresAuthentication: true)
            #expect(settings.peerAddress == expected.peerOnAir)
            #expect(settings.ownAddress == DeviceAddress(0xC000_0000_0001, .random))
            #expect(settings.identity == DeviceAddress(1, .public))
        }
    }

    // Vol 4 Part E §7.7.65.1: all but the status is unspecified when an attempt fails.
    @Test func `a failed attempt is read whatever else is in the event`() throws {
        let event = try HCIEvent.decode(hex("3e 13 01 02 ffff ff ee 000000000000 0000 0000 0000 00").span.bytes)
        guard case .connectionComplete(let complete) = event else {
            Issue.record("\(event)")
            return
        }
        #expect(complete.status == .unknownConnection)
    }

    @Test func `several handles in one event`() throws {
        let event = try HCIEvent.decode(hex("13 09 02 4000 0300 4120 0100").span.bytes)
        #expect(
            event
                == .completedPackets([
                    .init(handle: ConnectionHandle(0x40), count: 3), .init(handle: ConnectionHandle(0x41), count: 1),
                ]))
    }

    @Test func `what is not known is passed on by its code`() throws {
        #expect(try HCIEvent.decode(hex("ff 02 01 02").span.bytes) == .other(code: 0xFF, subevent: nil))
        #expect(try HCIEvent.decode(hex("3e 01 7f").span.bytes) == .other(code: 0x3E, subevent: 0x7F))
        #expect(throws: (any Error).self) { try HCIEvent.decode(hex("3e 00").span.bytes) }
    }

    // Vol 4 Part E §7.7.65.2, §7.7.65.11: an address is random, a name and flags, two reports.
    @Test func `legacy and directed reports`() throws {
        let event = try HCIEvent.decode(
            hex("3e 19 02 02 00 01 665544332211 03 020106 c5 04 00 0100000000c0 00 7f").span.bytes)
        #expect(
            event
                == .advertisingReports([
                    AdvertisingReport(
                        kind: [.legacy, .connectable, .scannable], address: DeviceAddress(0x1122_3344_5566, .random),
                        rssi: -59, data: [2, 1, 6]),
                    AdvertisingReport(
                        kind: [.legacy, .scannable, .scanResponse], address: DeviceAddress(0xC000_0000_0001, .public),
                        rssi: nil, data: []),
                ]))
        let directed = try HCIEvent.decode(
            hex("3e 12 0b 01 01 03 665544332211 01 0100000000c0 c5").span.bytes)
        #expect(
            directed
                == .advertisingReports([
                    AdvertisingReport(
                        kind: [.legacy, .connectable, .directed], address: DeviceAddress(0x1122_3344_5566, .random),
                        isResolved: true, rssi: -59, data: [])
                ]))
    }
}
