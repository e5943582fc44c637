// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshWire
import Testing

/// Golden bytes of companion-protocol §3.2, with their rows: from MeshCore One v1.3.0 (`MeshCore/Tests`: bytes of its
/// Python reference), meshcore_py's tests, and firmware `docs/companion_protocol.md` (C14).
struct CommandVectorTests {
    static let key = PublicKey(hex: "0123456789ab" + String(repeating: "00", count: 26))!
    static let keyHex = "0123456789ab" + String(repeating: "00", count: 26)

    static let vectors: [(row: String, hex: String, command: CompanionCommand)] = [
        ("C1", "01032020202020204d436f7265", .appStart(AppStart(appName: "MCore"))),
        ("C2", "1603", .deviceQuery(version: 3)),
        ("C3", "14", .getBatteryAndStorage),
        ("C3", "05", .getTime),
        ("C3", "04", .getContacts(since: nil)),
        ("C3", "0a", .syncNextMessage),
        ("C4", "0680009265", .setTime(1_704_067_200)),
        ("C5", "08546573744e6f6465", .setName("TestNode")),
        (
            "C6", "0e346640023807b4f800000000",
            .setLocation(
                LocationUpdate(location: Coordinates(latitude: 37.7749, longitude: -122.4194)!, altitude: 0))
        ),
        ("C7", "0c14", .setTransmitPower(20)),
        ("C7", "0cfb", .setTransmitPower(-5)),
        (
            "C8", "0b7bd60d0090d003000b08",
            .setRadio(
                RadioParameters(
                    frequencyKilohertz: 906_875, bandwidthHertz: 250_000, spreadingFactor: 11, codingRate: 8))
        ),
        ("C9", "07", .sendSelfAdvert(flood: false)),
        ("C9", "0701", .sendSelfAdvert(flood: true)),
        ("C10", "137265626f6f74", .reboot),
        ("C10", "337265736574", .factoryReset),
        (
            "C11", "020000800092650123456789ab48656c6c6f",
            .sendTextMessage(OutgoingText(timestamp: 1_704_067_200, recipient: key.prefix, text: "Hello"))
        ),
        (
            "C12", "020100800092650123456789ab737461747573",
            .sendTextMessage(
                OutgoingText(type: .commandLine, timestamp: 1_704_067_200, recipient: key.prefix, text: "status"))
        ),
        (
            "C13", "030000800092654869",
            .sendChannelText(OutgoingChannelText(channel: 0, timestamp: 1_704_067_200, text: "Hi"))
        ),
        (
            "C14", "030001d202964948656c6c6f",
            .sendChannelText(OutgoingChannelText(channel: 1, timestamp: 1_234_567_890, text: "Hello"))
        ),
        ("C15", "1a" + keyHex + "736563726574", .sendLogin(Login(publicKey: key, password: "secret"))),
        ("C16", "1d" + keyHex, .logout(key)),
        ("C16", "1b" + keyHex, .sendStatusRequest(key)),
        ("C16", "3400" + keyHex, .sendPathDiscovery(key)),
        ("C17", "1f00", .getChannel(index: 0)),
        ("C17", "1f03", .getChannel(index: 3)),
        (
            "C18",
            "200047656e6572616c" + String(repeating: "00", count: 25) + "000102030405060708090a0b0c0d0e0f",
            .setChannel(Channel(index: 0, name: "General", secret: Data(0..<16)))
        ),
        ("C19", "3800", .getStatistics(kind: 0)),
        ("C19", "3801", .getStatistics(kind: 1)),
        ("C19", "3802", .getStatistics(kind: 2)),
        ("C20", "27000000", .sendTelemetryRequest(nil)),
    ]

    @Test(arguments: vectors)
    func `command bytes of other implementations`(
        row: String, hex: String, command: CompanionCommand
    ) throws {
        #expect(CompanionFrame.hex(try command.encoded()) == hex, "\(row)")
        #expect(try CompanionCommand(decoding: try data(hex)) == command, "\(row)")
    }
}
