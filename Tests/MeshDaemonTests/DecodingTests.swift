// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshTransportAPI
import Testing

@testable import MeshDaemon

struct DecodingTests {
    static func values(
        _ hex: String, _ subject: HostCommand.DecodeSubject = .companion, _ wishes: HostCommand.DecodeOptions = .init()
    ) throws -> [JSONValue] {
        try Decoding(wishes, subject).values(of: hex).1
    }

    @Test func `frames are decoded from hexadecimal digits`() throws {
        #expect(try Self.values("0x3c 02:00 1603").map { $0["name"] } == ["DEVICE_QUERY"])
        let cut = try Self.values("3e050001")
        #expect(cut.count == 1 && cut[0]["error"]?.stringValue?.contains("cut") == true)
        #expect(try Self.values("").count == 1)
        for (hex, text) in [
            ("123", "3 hexadecimal digits are no whole bytes"), ("1z", "\"z\" is no hexadecimal digit"),
        ] {
            #expect(throws: UsageError(message: "\(text); write two of 0-9 and a-f for each byte")) {
                try Self.values(hex)
            }
        }
    }

    @Test func `a bare frame below 80 is read both ways`() throws {
        let values = try Self.values("0102")
        #expect(values[0]["as_command"]?["direction"] == "from-client")
        #expect(values[0]["as_reply"]?["name"] == "reply.error")
        #expect(try Self.values("83")[0]["direction"] == "from-radio")
    }

    // Packets: companion-protocol §3.5, A1 and A2.
    static let publicText = "150011C3C1354D619BAE9590E4D177DB7EEAF982F5BDCF78005D75157D9535FA90178F785D"
    static let botText = "15833fa002860ccae0eed9ca78b9ab0775d477c1f6490a398bf4edc75240"

    @Test func `Public is always tried, other channels when they are named`() throws {
        #expect(try Self.values(Self.publicText, .packet)[0]["decrypted"]?["sender"] == "🌲 Tree")
        #expect(try Self.values(Self.botText, .packet)[0]["decrypted"] == .null)
        for channel in ["#bot", "Robots=eb50a1bcb3e4e5d7bf69a57c9dada211"] {
            let values = try Self.values(Self.botText, .packet, .init(channels: [channel]))
            #expect(values[0]["decrypted"]?["text"] == "P")
            #expect(values[0]["decrypted"]?["channel"]?.stringValue == (channel == "#bot" ? channel : "Robots"))
            let log = try Self.values("8820ab" + Self.botText, .companion, .init(channels: [channel]))
            #expect(log[0]["decoded"]?["decrypted"]?["text"] == "P")
        }
        #expect(try Self.values("15c1ff00", .packet)[0]["error"] == "invalid path_byte at offset 1")
    }

    @Test(arguments: ["bot", "#", "x=", "x=00", "x=zz", "=eb50a1bcb3e4e5d7bf69a57c9dada211"])
    func `a channel that is none is a mistake in use`(word: String) {
        let message = "--channel \(word): say '#NAME', or NAME=KEY with a key of 32 or 64 hexadecimal digits"
        #expect(throws: UsageError(message: message)) {
            try Self.values(Self.botText, .packet, .init(channels: [word]))
        }
    }

    @Test func `an answer is read as that of the request`() throws {
        let key = String(repeating: "00", count: 32)
        let owner = try Self.values("8c0001020304" + "76310a480a41", .companion, .init(request: "32" + key + "07"))
        #expect(owner[0]["answer"] == ["firmware": "v1", "node_name": "H", "owner": "A"])
        let clock = try Self.values("3e0b008c00010203048000926583", .companion, .init(request: "39" + key + "0300"))
        #expect(clock[0]["answer"] == ["clock": 1_704_067_200, "features": 0x83])
        let cut = try Self.values("8c0001020304" + "80", .companion, .init(request: "39" + key + "0300"))
        #expect(cut[0]["answer"]?["error"] == "3 bytes missing at offset 0")
        #expect(try Self.values("83", .companion, .init(request: "32" + key + "07"))[0]["answer"] == nil)
        for hex in ["zz", "1603", "32"] {
            let message = "--request \(hex): not the frame of a SEND_BINARY_REQ (32...) or SEND_ANON_REQ (39...)"
            #expect(throws: UsageError(message: message)) { try Self.values("83", .companion, .init(request: hex)) }
        }
    }

    @Test func `keys and PINs are shown to who asks for them`() throws {
        let frame = "3e3200" + "1200" + String(repeating: "00", count: 32) + String(repeating: "11", count: 16)
        #expect(try Self.values(frame)[0]["channel_secret"] == nil)
        let shown = try Self.values(frame, .companion, .init(showsSecrets: true))[0]
        #expect(shown["channel_secret"]?.stringValue?.hasPrefix("1111") == true)
        #expect(try Encoding.bytes(of: shown, .companion).1 == Data(hexadecimal: frame)?.dropFirst(3))
    }

    @Test func `what is decoded can be encoded`() throws {
        let key = String(repeating: "00", count: 32)
        let answer = try Self.values("8c0001020304" + "76310a480a41", .companion, .init(request: "32" + key + "07"))[0]
        let (member, frame) = try Encoding.bytes(of: answer, .companion)
        #expect(member == "frame" && frame == Data(hexadecimal: "8c0001020304" + "76310a480a41"))
        let packet = try Self.values(Self.publicText, .packet)[0]
        #expect(try Encoding.bytes(of: packet, .packet).1 == Data(hexadecimal: Self.publicText))
        let readings = try Self.values("016700ff026882", .lpp)
        #expect(try Encoding.bytes(of: .array(readings), .lpp).1 == Data(hexadecimal: "016700ff026882"))
    }

    @Test func `packets of Bluetooth are decoded, keys only for who asks for them`() throws {
        let packets = try BluetoothDecoding(showsSecrets: false).packets(.hci, "01030c00 020620080004000400121500f0")
        #expect(packets.map { $0["name"] } == ["Reset", "ACL Data"])
        #expect(packets[1]["payload"]?["payload"]?["attribute_value"] == "f0")
        let key = "06" + String(repeating: "ab", count: 16)
        #expect(try BluetoothDecoding(showsSecrets: false).packets(.smp, key)[0]["long_term_key"] == nil)
        #expect(try BluetoothDecoding(showsSecrets: true).packets(.smp, key)[0]["long_term_key"] != nil)
        let cut = try BluetoothDecoding(showsSecrets: false).packets(.att, "1215")
        #expect(cut[0]["error"] == "1 bytes missing at offset 1" && cut[0]["name"] == "Write Request")
        #expect(throws: UsageError.self) { try BluetoothDecoding(showsSecrets: false).packets(.att, "1") }
    }
}
