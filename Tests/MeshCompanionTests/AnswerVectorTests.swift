// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import MeshWire
import Testing

/// Golden bytes of companion-protocol §3.3. R1 is a frame quoted by a peer; R2 and P2 to P4 are MeshCore One's; the
/// others were decoded with meshcore_py 2.3.17.
struct AnswerVectorTests {
    static let sender: [UInt8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xAB]

    static let replies: [(row: String, hex: String, reply: CompanionReply)] = [
        (
            "R1",
            "05010a16a72a0122f898a608e157ee6016bb05c26be809d654a3e810f7ede26f19dfafe4dc47d9028eb0cbff0000000095440d0090d0"
                + "03000b05435436325f66646c",
            .selfInfo(
                SelfInfo(
                    type: .chat, transmitPower: 10, maximumTransmitPower: 22,
                    publicKey: PublicKey(hex: "a72a0122f898a608e157ee6016bb05c26be809d654a3e810f7ede26f19dfafe4")!,
                    location: Coordinates(latitude: 47.79414, longitude: -3.42821)!, frequencyKilohertz: 869_525,
                    bandwidthHertz: 250_000, spreadingFactor: 11, codingRate: 5, name: "CT62_fdl"))
        ),
        ("R2", "0c8000", .batteryAndStorage(BatteryAndStorage(batteryMillivolts: 128))),
        (
            "R3", "0cfc101600000064000000",
            .batteryAndStorage(
                BatteryAndStorage(
                    batteryMillivolts: 4_348, storage: .init(usedKilobytes: 22, totalKilobytes: 100)))
        ),
        ("R4", "0980009265", .currentTime(1_704_067_200)),
        ("R5", "0102", .error(code: CompanionErrorCode.notFound.rawValue)),
        ("R5", "00", .ok(value: nil)),
        ("R5", "0a", .noMoreMessages),
        (
            "R6", "0601deadbeef88130000",
            .sent(SentReceipt(isFlood: true, tag: 0xEFBE_ADDE, timeoutMilliseconds: 5_000))
        ),
        (
            "R7", "070123456789ab02008000926548656c6c6f",
            .message(
                ReceivedMessage(
                    source: .contact(keyPrefix: sender), pathByte: 2, timestamp: 1_704_067_200, text: "Hello"))
        ),
        (
            "R8", "10f800000123456789abff008000926548656c6c6f",
            .message(
                ReceivedMessage(
                    source: .contact(keyPrefix: sender), snrQuarters: -8, pathByte: 0xFF, timestamp: 1_704_067_200,
                    text: "Hello"))
        ),
        (
            "R9", "101400000123456789ab420280009265deadbeef4869",
            .message(
                ReceivedMessage(
                    source: .contact(keyPrefix: sender), snrQuarters: 20, pathByte: 0x42, textType: 2,
                    timestamp: 1_704_067_200, authorPrefix: [0xDE, 0xAD, 0xBE, 0xEF], text: "Hi"))
        ),
        (
            "R10", "0800030080009265426f623a204869",
            .message(
                ReceivedMessage(
                    source: .channel(index: 0), pathByte: 3, timestamp: 1_704_067_200, text: "Bob: Hi"))
        ),
        (
            "R11", "1114000001ff0080009265426f623a204869",
            .message(
                ReceivedMessage(
                    source: .channel(index: 1), snrQuarters: 20, pathByte: 0xFF, timestamp: 1_704_067_200,
                    text: "Bob: Hi"))
        ),
    ]

    @Test(arguments: replies)
    func `reply bytes of other implementations`(row: String, hex: String, reply: CompanionReply) throws {
        #expect(try CompanionReply(decoding: try data(hex)) == reply, "\(row)")
        #expect(CompanionFrame.hex(try reply.encoded()) == hex, "\(row)")
    }

    @Test func `R12: a message is told in the layout that a client understands`() throws {
        let message = try #require(try ReceivedMessage(try data("1114000001ff0080009265426f623a204869")))
        #expect(CompanionFrame.hex(try message.encoded(version: 1)) == "0801ff0080009265426f623a204869")
        #expect(CompanionFrame.hex(try message.encoded(version: 3)) == "1114000001ff0080009265426f623a204869")
        let old = try #require(try ReceivedMessage(try data("070123456789ab02008000926548656c6c6f")))
        #expect(CompanionFrame.hex(try old.encoded(version: 13)) == "100000000123456789ab02008000926548656c6c6f")
        #expect(try ReceivedMessage(try data("0a")) == nil)
        #expect(try ReceivedMessage(Data()) == nil)
    }

    static let pushes: [(row: String, hex: String, push: CompanionPush)] = [
        (
            "P1", "80" + String(repeating: "ab", count: 32), .advert(PublicKey(Data(repeating: 0xAB, count: 32))!)
        ),
        ("P2", "82deadbeef", .sendConfirmed(SendConfirmation(acknowledgement: 0xEFBE_ADDE))),
        (
            "P2", "82deadbeeff4010000",
            .sendConfirmed(SendConfirmation(acknowledgement: 0xEFBE_ADDE, tripMilliseconds: 500))
        ),
        (
            "P3", "8428abff01020304",
            .rawData(
                ReceivedRawData(signalToNoise: SignalToNoise(quarters: 40), rssi: -85, payload: Data([1, 2, 3, 4])))
        ),
        (
            "P4", "8500010203040506",
            .loginSuccess(LoginSuccess(permissions: 0, server: KeyPrefix(Data([1, 2, 3, 4, 5, 6]))!))
        ),
        (
            "P5", "8501aabbccddeeff605d5a6a0302",
            .loginSuccess(
                LoginSuccess(
                    permissions: 1, server: KeyPrefix(hex: "aabbccddeeff")!,
                    serverTime: 1_784_307_040, accessPermissions: 3,
                    firmwareLevel: 2))
        ),
        ("P6", "8600aabbccddeeff", .loginFailed(KeyPrefix(hex: "aabbccddeeff")!)),
        (
            "P8", "8820ab1500aabbcc",
            .receivedPacketLog(
                ReceivedPacketLog(
                    signalToNoise: SignalToNoise(quarters: 32), rssi: -85,
                    packet: Data([0x15, 0, 0xAA, 0xBB, 0xCC])))
        ),
    ]

    @Test(arguments: pushes)
    func `push bytes of other implementations`(row: String, hex: String, push: CompanionPush) throws {
        #expect(try CompanionPush(decoding: try data(hex)) == push, "\(row)")
        #expect(CompanionFrame.hex(try push.encoded()) == hex, "\(row)")
    }

    @Test func `P2: an acknowledgement of three bytes is an error`() throws {
        #expect(throws: DecodeError(.truncated(missing: 1), offset: 1)) {
            try CompanionPush(decoding: try data("82deadbe"))
        }
    }

    /// P7.
    static let status =
        "8700aabb11223344681003008affabffe8030000f4010000100e00008051010064000000900100002c010000bc02000000001e0005000a"
        + "00201c0000"

    @Test func `P7: the counters of a repeater`() throws {
        let hex = Self.status
        let push = try CompanionPush(decoding: try data(hex))
        guard case .statusResponse(let response) = push else {
            Issue.record("\(push)")
            return
        }
        let status = response.status
        #expect("\(response.node)" == "aabb11223344")
        #expect(status.batteryMillivolts == 4_200 && status.transmitQueue == 3)
        #expect(status.noiseFloor == -118 && status.lastRSSI == -85)
        #expect(status.packetsReceived == 1_000 && status.packetsSent == 500)
        #expect(status.airtimeSeconds == 3_600 && status.uptimeSeconds == 86_400)
        #expect(status.sentFlood == 100 && status.sentDirect == 400)
        #expect(status.receivedFlood == 300 && status.receivedDirect == 700)
        #expect(status.errorEvents == 0 && status.lastSNRQuarters == 30)
        #expect(status.directDuplicates == 5 && status.floodDuplicates == 10)
        #expect(status.posts == 5 && status.postPushes == 10)
        #expect(status.receiveAirtimeSeconds == 7_200 && status.receiveErrors == nil)
        #expect(CompanionFrame.hex(try push.encoded()) == hex)
        #expect(push.json()["last_snr_db"] == .double(7.5))
    }

    @Test func `P8: the log tells the packet's parts`() throws {
        let push = try CompanionPush(decoding: try data("8820ab1500aabbcc"))
        guard case .receivedPacketLog(let log) = push else {
            Issue.record("\(push)")
            return
        }
        #expect(log.signalToNoise.decibels == 8)
        let packet = try log.decodedPacket()
        #expect(packet.route == .flood && packet.payloadType == .groupText && packet.path.hops.isEmpty)
        #expect(push.json()["decoded"]?["payload_type"] == "GRP_TXT")
        #expect(push.json()["decoded"]?["contents"]?["channel_hash"] == 0xAA)
        #expect(CompanionFrame.hex(try packet.hash()) == "6826cc834e0067f2")
    }

    @Test func `the bytes after a channel's name are garbage`() throws {
        // companion-protocol §1.6, CHANNEL_INFO: written with strcpy.
        let name = "5075626c6963" + "00" + String(repeating: "7a", count: 25)
        let reply = try CompanionReply(decoding: try data("1200" + name + String(repeating: "11", count: 16)))
        #expect(reply == .channelInfo(Channel(index: 0, name: "Public", secret: Data(repeating: 0x11, count: 16))))
    }

    @Test func `a trace counts bytes, and its ratios nodes`() throws {
        // Two nodes with hashes of two bytes (firmware `MyMesh::onTraceRecv`).
        let push = try CompanionPush(
            decoding: try data("89000401" + "07000000" + "08000000" + "01020304" + "04fc" + "10"))
        #expect(
            push
                == .trace(
                    TraceResult(
                        flags: 1, tag: 7, authCode: 8, hashes: Data([1, 2, 3, 4]),
                        signalToNoise: [SignalToNoise(quarters: 4), SignalToNoise(quarters: -4)],
                        finalSignalToNoise: SignalToNoise(quarters: 16))))
    }

    @Test func `the device info of old firmware tells its version only`() throws {
        let old = try CompanionReply(decoding: try data("0d02000000000000" + "4a616e2032303235"))
        #expect(old == .deviceInfo(DeviceInfo(protocolVersion: 2)))
        // Without the bytes of versions 9 and 10.
        let frame = try CompanionReply.deviceInfo(CompanionSamples.deviceInfo).encoded()
        var shorter = CompanionSamples.deviceInfo
        shorter.repeats = nil
        shorter.pathHashMode = nil
        #expect(try CompanionReply(decoding: frame.prefix(80)) == .deviceInfo(shorter))
        #expect(throws: DecodeError.self) { try CompanionReply(decoding: frame.prefix(79)) }
    }

    @Test func `custom variables are told apart`() {
        let variables = CompanionReply.variables("gps:1,note:a:b,broken")
        #expect(variables == [CustomVariable(name: "gps", value: "1"), CustomVariable(name: "note", value: "a:b")])
        #expect(CompanionReply.variables("").isEmpty)
        // With an accent, colon and comma are other characters, but the same bytes.
        #expect(
            CompanionReply.variables("a:\u{301}1,\u{301}b:2") == [
                CustomVariable(name: "a", value: "\u{301}1"), CustomVariable(name: "\u{301}b", value: "2"),
            ])
    }
}
