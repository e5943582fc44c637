// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTestSupport
import MeshTransportAPI
import Testing

struct CompanionFrameJSONTests {
    static func json(_ hex: String, _ direction: FrameDirection = .fromRadio) throws -> JSONValue {
        CompanionFrame.json(try data(hex), direction)
    }

    // Golden bytes: reference §3.3; R1 was quoted by a peer, the others were decoded with meshcore_py 2.3.17.
    @Test func `self info`() throws {
        let info = try Self.json(
            "05010a16a72a0122f898a608e157ee6016bb05c26be809d654a3e810f7ede26f19dfafe4dc47d9028eb0cbff0000000095440d0090d0"
                + "03000b05435436325f66646c")
        #expect(info["name"] == "reply.selfInfo")
        #expect(info["node_name"] == "CT62_fdl")
        #expect(info["frequency_khz"] == 869_525)
        #expect(info["bandwidth_hz"] == 250_000)
        #expect(info["spreading_factor"] == 11)
        #expect(info["public_key"]?.stringValue?.hasPrefix("a72a0122") == true)
    }

    @Test func `messages in all four layouts`() throws {
        let direct = try Self.json("070123456789ab02008000926548656c6c6f")
        #expect(direct["from"] == "0123456789ab")
        #expect(direct["text"] == "Hello")
        #expect(direct["hops"] == 2)
        #expect(direct["timestamp"] == 1_704_067_200)
        let v3 = try Self.json("10f800000123456789abff008000926548656c6c6f")
        #expect(v3["snr_db"] == .double(-2))
        #expect(v3["hops"] == .null)
        let signed = try Self.json("101400000123456789ab420280009265deadbeef4869")
        #expect(signed["author"] == "deadbeef")
        #expect(signed["text"] == "Hi")
        let channel = try Self.json("0800030080009265426f623a204869")
        #expect(channel["channel"] == 0)
        #expect(channel["text"] == "Bob: Hi")
        let channelV3 = try Self.json("1114000001ff0080009265426f623a204869")
        #expect(channelV3["channel"] == 1)
        #expect(channelV3["snr_db"] == .double(5))
    }

    @Test func `small replies and pushes`() throws {
        #expect(try Self.json("0c8000")["battery_mv"] == 128)
        #expect(try Self.json("0980009265")["time"] == 1_704_067_200)
        #expect(try Self.json("0102")["reason"] == "notFound")
        let sent = try Self.json("0601deadbeef88130000")
        #expect(sent["flood"] == true && sent["tag"] == "deadbeef" && sent["timeout_ms"] == 5_000)
        #expect(try Self.json("82deadbeeff4010000")["trip_ms"] == 500)
        let log = try Self.json("8820ab1500aabbcc")
        #expect(log["snr_db"] == .double(8) && log["rssi_dbm"] == -85)
    }

    @Test func `a command tells its name and the role it needs`() throws {
        #expect(try Self.json("1603", .fromClient)["name"] == "DEVICE_QUERY")
        #expect(try Self.json("13" + "7265626f6f74", .fromClient)["role"] == "owner")
        #expect(try Self.json("0f", .fromClient)["error"] != nil)
    }

    @Test func `the PIN in the device info is not shown`() throws {
        let info = try Self.json("0d0d2008" + "40e20100" + String(repeating: "41", count: 72) + "0000")
        #expect(info["protocol_version"] == 13)
        #expect(!info.text().contains("123456"))
    }

    @Test func `no input makes it fail, and every cut is told`() throws {
        var random = SplitMix(state: 1)
        for _ in 0..<5_000 {
            let frame = Data((0..<Int(random.next() % 200)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
            _ = CompanionFrame.json(frame, .fromRadio)
            _ = CompanionFrame.json(frame, .fromClient)
        }
        let message = try data("10f800000123456789abff0080009265")
        for length in 1..<message.count {
            #expect(CompanionFrame.json(message.prefix(length), .fromRadio)["error"] != nil, "\(length) bytes")
        }
    }
}
