// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import Testing

/// What the vectors of the reference leave out: the bytes that meshcore_py 2.3.17 (`meshcore/commands`) hands to its
/// connection for each call, and frames composed from the firmware's layouts whose fields its reader
/// (`meshcore/reader.py`) tells as here.
struct PythonClientVectorTests {
    static let key = CommandVectorTests.key
    static let keyHex = CommandVectorTests.keyHex
    static let scopeKey = Data([
        0x42, 0x4A, 0xC9, 0xEB, 0x6D, 0x5A, 0xF6, 0x60, 0x9B, 0x7A, 0x7A, 0x72, 0xCF, 0xA3, 0xAB, 0xE5,
    ])

    static func zeros(_ count: Int) -> String { String(repeating: "00", count: count) }

    static var update: ContactUpdate {
        var field = Contact.emptyPath
        field.replaceSubrange(0..<4, with: CompanionSamples.path.hashes)
        return ContactUpdate(
            publicKey: key, type: .chat, pathByte: CompanionSamples.path.byte, pathField: field, name: "Ann",
            lastAdvert: 1_704_067_200, location: CompanionSamples.place)
    }

    static let commands: [(call: String, hex: String, command: CompanionCommand)] = [
        ("reset_path", "0d" + keyHex, .resetPath(key)),
        ("share_contact", "10" + keyHex, .shareContact(key)),
        ("export_contact", "11" + keyHex, .exportContact(key)),
        ("export_contact()", "11", .exportContact(nil)),
        ("import_contact", "12" + CompanionFrame.hex(Data(0..<100)), .importContact(Data(0..<100))),
        ("remove_contact", "0f" + keyHex, .removeContact(key)),
        (
            "update_contact",
            "09" + keyHex + "0100" + "42" + "01020304" + zeros(60) + "416e6e" + zeros(29) + "80009265"
                + "dc47d9028eb0cbff", .addUpdateContact(update)
        ),
        ("set_autoadd_config", "3a1f", .setAutoAdd(AutoAdd(mask: 0x1F))),
        ("get_autoadd_config", "3b", .getAutoAdd),
        ("get_contact_by_key", "1e" + keyHex, .getContactByKey(key)),
        ("get_advert_path", "2a00" + keyHex, .getAdvertPath(key)),
        ("send_control_data", "37800102", .sendControlData(Data([0x80, 1, 2]))),
        ("run_cli_command", "42766572", .runCLICommand("ver")),
        ("send_raw_packet", "4102150001", .sendRawPacket(OutgoingRawPacket(priority: 2, packet: Data([0x15, 0, 1])))),
        ("get_tuning", "2b", .getTuning),
        (
            "set_radio", "0b77440d0024f40000080801",
            .setRadio(
                RadioParameters(
                    frequencyKilohertz: 869_495, bandwidthHertz: 62_500, spreadingFactor: 8, codingRate: 8,
                    repeats: true))
        ),
        ("set_devicepin", "2540e20100", .setDevicePIN(123_456)),
        ("set_custom_var", "296770733a31", .setCustomVariable(CustomVariable(name: "gps", value: "1"))),
        ("get_custom_vars", "28", .getCustomVariables),
        ("export_private_key", "17", .exportPrivateKey),
        ("import_private_key", "18" + CompanionFrame.hex(Data(0..<64)), .importPrivateKey(Data(0..<64))),
        ("sign_start", "21", .signStart),
        ("sign_data", "22010203", .signData(Data([1, 2, 3]))),
        ("sign_finish", "23", .signFinish),
        (
            "set_other_params", "26011901",
            .setOtherParameters(OtherParameters(manualAdd: 1, telemetryModes: 0x19, locationPolicy: 1))
        ),
        ("set_path_hash_mode", "3d0001", .setPathHashMode(1)),
        ("get_allowed_repeat_freq", "3c", .getAllowedRepeatFrequencies),
        ("get_contacts", "044d000000", .getContacts(since: 77)),
        ("send_telemetry_req", "27000000" + keyHex, .sendTelemetryRequest(key)),
        (
            "send_trace", "2407000000010000000101020304",
            .sendTracePath(TraceRequest(tag: 7, authCode: 1, flags: 1, path: Data([1, 2, 3, 4])))
        ),
        (
            "send_raw_data", "19020a0b01020304",
            .sendRawData(
                OutgoingRawData(
                    path: PacketPath(hashSize: 1, hashes: Data([0x0A, 0x0B]))!, payload: Data([1, 2, 3, 4])))
        ),
        (
            "send_channel_data", "3e01ff0201010203",
            .sendChannelData(OutgoingChannelData(channel: 1, dataType: 0x0102, payload: Data([1, 2, 3])))
        ),
        ("set_flood_scope", "3600" + CompanionFrame.hex(scopeKey), .setFloodScope(.region(key: scopeKey))),
        ("reset_flood_scope", "3600", .setFloodScope(.standard)),
        ("force_unscoped", "3601", .setFloodScope(.unscoped)),
        (
            "set_default_flood_scope", "3f23616c7073" + zeros(26) + CompanionFrame.hex(scopeKey),
            .setDefaultScope(DefaultScope(name: "#alps", key: scopeKey))
        ),
        ("get_default_flood_scope", "40", .getDefaultScope),
        (
            "req_mma_sync", "32" + keyHex + "04100e0000000000000000",
            .sendBinaryRequest(
                NodeRequest(
                    publicKey: key,
                    request: try! BinaryRequest.minMaxAverage(startSecondsAgo: 3_600, endSecondsAgo: 0).encoded()))
        ),
        (
            "req_regions_async", "39" + keyHex + "0100",
            .sendAnonymousRequest(
                NodeRequest(
                    publicKey: key, request: try! AnonymousRequest.regions(replyPath: .zeroHops).encoded()))
        ),
    ]

    @Test(arguments: commands)
    func `commands as the Python client sends them`(call: String, hex: String, command: CompanionCommand) throws {
        #expect(CompanionFrame.hex(try command.encoded()) == hex, "\(call)")
        #expect(try CompanionCommand(decoding: try data(hex)) == command, "\(call)")
    }

    @Test func `what the Python client adds for later is passed over`() throws {
        // set_tuning: two reserved bytes at the end.
        #expect(
            try CompanionCommand(decoding: try data("1564000000e80300000000"))
                == .setTuning(Tuning(receiveDelayThousandths: 100, airtimeFactorThousandths: 1_000)))
    }

    /// Neither the reference nor the Python client has bytes for these; composed from firmware v1.17.1, MyMesh.cpp. The
    /// Python client sends a bare 1c (companion-protocol §1.11).
    static let others: [(hex: String, command: CompanionCommand)] = [
        ("1c" + keyHex, .hasConnection(key)), ("3f", .setDefaultScope(nil)),
        ("1564000000e8030000", .setTuning(Tuning(receiveDelayThousandths: 100, airtimeFactorThousandths: 1_000))),
    ]

    @Test(arguments: others)
    func `commands that others do not send`(hex: String, command: CompanionCommand) throws {
        #expect(CompanionFrame.hex(try command.encoded()) == hex)
        #expect(try CompanionCommand(decoding: try data(hex)) == command)
    }

    @Test func `every command, reply and push has golden bytes`() throws {
        let commands = CommandVectorTests.vectors.map(\.hex) + Self.commands.map(\.hex) + Self.others.map(\.hex)
        let replies = AnswerVectorTests.replies.map(\.hex) + Self.replies
        let pushes = AnswerVectorTests.pushes.map(\.hex) + [AnswerVectorTests.status] + Self.pushes
        func codes(_ frames: [String]) throws -> Set<UInt8> { Set(try frames.compactMap { try data($0).first }) }
        #expect(try codes(commands) == Set(CommandCode.allCases.map(\.rawValue)))
        #expect(try codes(replies) == Set(ReplyCode.allCases.map(\.rawValue)))
        #expect(try codes(pushes) == Set(PushCode.allCases.map(\.rawValue)))
    }

    static let sampleKeyHex = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
    static let contactHex =
        sampleKeyHex + "020342" + "01020304" + zeros(60) + "48c3bc67656c" + zeros(26)
        + "80009265dc47d9028eb0cbff81009265"
    static let secretHex = "000102030405060708090a0b0c0d0e0f"

    /// Each is the encoding of one of ``CompanionSamples``.
    static let replies = [
        "025e010000", "040c000000", "03" + contactHex,
        "0d0daf2840e20100" + "313420417567203230323600" + "426f617264" + zeros(35) + "76312e31372e31" + zeros(13)
            + "0101",
        "0b8100ff3e07", "0e" + CompanionFrame.hex(Data(0..<64)), "0f", "12035075626c6963" + zeros(26) + secretHex,
        "130000200000", "14" + String(repeating: "5a", count: 64), "156770733a312c6d6f64653a32", "16030000004201020304",
        "170100000002000000",
        "1800010002000000030004", "18018affabf70100000002000000",
        "1802010000000200000003000000040000000500000006000000",
        "180201000000020000000300000004000000050000000600000007000000", "190302",
        "1a689b0600689b060077440d0077440d00", "1bf7000001ff0201058100ff3e07",
        "1c726567696f6e" + zeros(25) + secretHex, "1c", "1d76312e3138",
    ]

    @Test(arguments: replies)
    func `replies as the Python client reads them`(hex: String) throws {
        let reply = try CompanionReply(decoding: try data(hex))
        #expect(CompanionSamples.replies.contains(reply))
        #expect(CompanionFrame.hex(try reply.encoded()) == hex)
    }

    /// Each is the encoding of one of ``CompanionSamples``.
    static let pushes = [
        "81" + sampleKeyHex, "83",
        "87000123456789ab681000008affabffe8030000" + zeros(30) + "e2ff00000a00201c000002000000",
        "89000401070000000800000001020304f7f7f7", "8a" + contactHex, "8b000123456789ab016700ff",
        "8c00030000008100ff3e07", "8d000123456789ab420102030400", "8ef7ff008100ff3e07", "8f" + sampleKeyHex, "90",
    ]

    @Test(arguments: pushes)
    func `pushes as the Python client reads them`(hex: String) throws {
        let push = try CompanionPush(decoding: try data(hex))
        #expect(CompanionSamples.pushes.contains(push))
        #expect(CompanionFrame.hex(try push.encoded()) == hex)
    }
}
