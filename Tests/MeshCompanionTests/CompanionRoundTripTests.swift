// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import MeshWire
import Testing

struct CompanionRoundTripTests {
    @Test func `there is a codec for every code`() throws {
        let commands = Set(CompanionSamples.commands.map(\.code))
        for code in CommandCode.allCases { #expect(commands.contains(code.rawValue), "\(code)") }
        let replies = Set(CompanionSamples.replies.map(\.code))
        for code in ReplyCode.allCases { #expect(replies.contains(code.rawValue), "\(code)") }
        let pushes = Set(CompanionSamples.pushes.map(\.code))
        for code in PushCode.allCases { #expect(pushes.contains(code.rawValue), "\(code)") }
    }

    @Test(arguments: CompanionSamples.commands)
    func `a command survives its own bytes, and the radio's guard lets it pass`(command: CompanionCommand) throws {
        let frame = try command.encoded()
        #expect(try CompanionCommand(decoding: frame) == command)
        #expect(frame.first == command.code)
        if case .admitted = CommandAdmission.of(frame, role: .owner) {} else { Issue.record("refused: \(command)") }
    }

    @Test(arguments: CompanionSamples.replies)
    func `a reply survives its own bytes, and the framing takes it for whole`(reply: CompanionReply) throws {
        let frame = try reply.encoded()
        #expect(try CompanionReply(decoding: frame) == reply)
        let bytes = [UInt8](frame)
        let isPlausible = CompanionLayout.isPlausible(bytes.span.bytes)
        #expect(isPlausible)
    }

    @Test(arguments: CompanionSamples.pushes)
    func `a push survives its own bytes, and the framing takes it for whole`(push: CompanionPush) throws {
        let frame = try push.encoded()
        #expect(try CompanionPush(decoding: frame) == push)
        let bytes = [UInt8](frame)
        let isPlausible = CompanionLayout.isPlausible(bytes.span.bytes)
        #expect(isPlausible)
    }

    @Test(arguments: CompanionSamples.commands)
    func `a command survives its own JSON text`(command: CompanionCommand) throws {
        let text = command.json(showsSecrets: true).serialized()
        #expect(try CompanionCommand(json: try JSONValue(parsing: text)) == command)
    }

    @Test func `a cut frame is an error at an offset inside it, or a valid shorter form`() throws {
        func cuts(_ frame: Data, _ recode: (Data) throws -> Data) throws {
            for length in 0..<frame.count {
                let cut = frame.prefix(length)
                do {
                    #expect(try recode(Data(cut)) == cut, "\(length) of \(frame.count) bytes of \(frame[0])")
                } catch let error as DecodeError {
                    #expect((0...length).contains(error.offset))
                }
            }
        }
        for command in CompanionSamples.commands {
            try cuts(command.encoded()) { try CompanionCommand(decoding: $0).encoded() }
        }
        for reply in CompanionSamples.replies where reply.code != ReplyCode.contact.rawValue {
            try cuts(reply.encoded()) { try CompanionReply(decoding: $0).encoded() }
        }
        for push in CompanionSamples.pushes where push.code != PushCode.newAdvert.rawValue {
            try cuts(push.encoded()) { try CompanionPush(decoding: $0).encoded() }
        }
        // These have one form only.
        for length in 0..<148 {
            let frame = try CompanionReply.contact(CompanionSamples.contact).encoded().prefix(length)
            #expect(throws: DecodeError.self) { try CompanionReply(decoding: Data(frame)) }
        }
    }

    @Test func `bytes that a newer firmware adds are passed over`() throws {
        let time = try CompanionReply(decoding: try data("0980009265ffff"))
        #expect(time == .currentTime(1_704_067_200))
        #expect(try CompanionCommand(decoding: try data("14aabb")) == .getBatteryAndStorage)
    }

    @Test func `a reply is no push, and a push no reply`() throws {
        #expect(throws: DecodeError(.unknownCode(0x83), offset: 0)) { try CompanionReply(decoding: try data("83")) }
        #expect(throws: DecodeError(.unknownCode(0x0A), offset: 0)) { try CompanionPush(decoding: try data("0a")) }
        #expect(throws: DecodeError(.truncated(missing: 1), offset: 0)) { try CompanionReply(decoding: Data()) }
    }
}

struct CompanionEncodingTests {
    @Test func `what the layout cannot hold is refused, not cut`() throws {
        #expect(throws: FieldError("node_name", .tooLong(limit: 31))) {
            try CompanionCommand.setName(String(repeating: "x", count: 32)).encoded()
        }
        #expect(throws: FieldError("channel_name", .tooLong(limit: 31))) {
            let name = String(repeating: "é", count: 16)
            return try CompanionCommand.setChannel(Channel(index: 0, name: name, secret: Data(count: 16))).encoded()
        }
        #expect(throws: FieldError("channel_secret", .wrongLength(expected: 16))) {
            try CompanionCommand.setChannel(Channel(index: 0, name: "", secret: Data(count: 32))).encoded()
        }
        #expect(throws: FieldError("password", .tooLong(limit: 15))) {
            try CompanionCommand.sendLogin(Login(publicKey: .zero, password: "sixteen letters.")).encoded()
        }
        #expect(throws: FieldError("text", .holdsNUL)) {
            let text = OutgoingChannelText(channel: 0, timestamp: 0, text: "a\0b")
            return try CompanionCommand.sendChannelText(text).encoded()
        }
        #expect(throws: FieldError("location_policy", .afterAbsentField)) {
            try CompanionCommand.setOtherParameters(OtherParameters(manualAdd: 0, locationPolicy: 1)).encoded()
        }
        #expect(throws: FieldError("path", .invalid)) {
            try CompanionCommand.sendTracePath(TraceRequest(tag: 1, flags: 1, path: Data([1, 2, 3]))).encoded()
        }
        // The firmware wants more than ten bytes, so an empty path is one too few (companion-protocol §1.11).
        #expect(throws: FieldError("path", .tooShort(minimum: 1))) {
            try CompanionCommand.sendTracePath(TraceRequest(tag: 1, path: Data())).encoded()
        }
        #expect(throws: FieldError("frame", .tooLong(limit: 176))) {
            try CompanionCommand.signData(Data(count: 176)).encoded()
        }
        #expect(throws: FieldError("payload", .tooShort(minimum: 4))) {
            try CompanionCommand.sendRawData(OutgoingRawData(path: .zeroHops, payload: Data(count: 3))).encoded()
        }
        #expect(throws: FieldError("data", .invalid)) { try CompanionCommand.sendControlData(Data([0x7F])).encoded() }
        #expect(throws: FieldError("variable", .invalid)) {
            try CompanionCommand.setCustomVariable(CustomVariable(name: "a:b", value: "c")).encoded()
        }
    }

    @Test func `a command that only an accident sends has no meaning`() throws {
        #expect(throws: DecodeError(.invalidField("confirmation"), offset: 1)) {
            try CompanionCommand(decoding: try data("137265626f6f75"))
        }
        #expect(throws: DecodeError(.truncated(missing: 32), offset: 1)) {
            try CompanionCommand(decoding: try data("0f"))
        }
        #expect(throws: DecodeError(.truncated(missing: 5), offset: 1)) {
            try CompanionCommand(decoding: try data("33"))
        }
        #expect(throws: DecodeError(.truncated(missing: 32), offset: 1)) {
            try CompanionCommand(decoding: try data("1c"))
        }
    }

    @Test func `JSON that is no command says which field is to blame`() throws {
        func error(_ json: JSONValue) -> FieldError? {
            do throws(FieldError) {
                _ = try CompanionCommand(json: json)
                return nil
            } catch {
                return error
            }
        }
        #expect(error([]) == FieldError("command", .wrongType(expected: "an object")))
        #expect(error([:]) == FieldError("name", .missing))
        #expect(error(["name": "NO_SUCH"]) == FieldError("name", .invalid))
        #expect(error(["name": "SET_DEVICE_TIME"]) == FieldError("time", .missing))
        #expect(
            error(["name": "SET_DEVICE_TIME", "time": -1])
                == FieldError("time", .outOfRange(0...Int64(UInt32.max))))
        #expect(
            error(["name": "SET_DEVICE_TIME", "time": "now"])
                == FieldError("time", .wrongType(expected: "an integer")))
        #expect(error(["name": "GET_DEVICE_TIME", "code": 6]) == FieldError("code", .invalid))
        #expect(error(["name": "GET_DEVICE_TIME", "code": 256]) == FieldError("code", .outOfRange(0...255)))
        #expect(error(["name": "UNKNOWN", "bytes": ""]) == FieldError("code", .missing))
        #expect(error(["name": "GET_DEVICE_TIME", "time": 1]) == FieldError("time", .unknown))
        #expect(
            error(["name": "LOGOUT", "public_key": "0123"]) == FieldError("public_key", .wrongLength(expected: 32)))
        #expect(
            error(["name": "SET_ADVERT_LATLON", "latitude_deg": 4_000, "longitude_deg": 0])
                == FieldError("latitude_deg", .outOfRange(Int64(Int32.min)...Int64(Int32.max))))
        #expect(
            try CompanionCommand(json: ["name": "SEND_SELF_ADVERT", "flood": true]) == .sendSelfAdvert(flood: true))
        #expect(try CompanionCommand(json: ["name": "SEND_SELF_ADVERT"]) == .sendSelfAdvert(flood: false))
    }

    @Test func `the names of JSON members`() throws {
        let radio = RadioParameters(
            frequencyKilohertz: 906_875, bandwidthHertz: 250_000, spreadingFactor: 11, codingRate: 8)
        #expect(
            CompanionCommand.setRadio(radio).json() == [
                "name": "SET_RADIO_PARAMS", "code": 11, "frequency_khz": 906_875, "bandwidth_hz": 250_000,
                "spreading_factor": 11, "coding_rate": 8,
            ])
        let receipt = SentReceipt(isFlood: true, tag: 0xEFBE_ADDE, timeoutMilliseconds: 5_000)
        #expect(
            CompanionReply.sent(receipt).json() == [
                "name": "reply.sent", "code": 6, "flood": true, "tag": "deadbeef", "timeout_ms": 5_000,
            ])
        let heard = ReceivedControlData(
            signalToNoise: SignalToNoise(quarters: -9), rssi: -85, pathByte: PathByte(rawValue: 0x43),
            payload: Data([0x92]))
        #expect(
            CompanionPush.controlData(heard).json() == [
                "name": "push.controlData", "code": 142, "snr_db": .double(-2.25), "rssi_dbm": -85, "path_byte": 67,
                "hops": 3, "payload": "92",
            ])
    }

    @Test func `secrets are in JSON on demand only`() throws {
        let secret = "000102030405060708090a0b0c0d0e0f"
        for reply in CompanionSamples.replies { #expect(!reply.json().text().contains(secret)) }
        for command in CompanionSamples.commands { #expect(!command.json().text().contains(secret)) }
        #expect(CompanionReply.deviceInfo(CompanionSamples.deviceInfo).json()["pin"] == nil)
        #expect(CompanionReply.deviceInfo(CompanionSamples.deviceInfo).json(showsSecrets: true)["pin"] == 123_456)
        let login = CompanionCommand.sendLogin(Login(publicKey: .zero, password: "hunter2"))
        #expect(login.json()["password"] == nil)
        #expect(login.json(showsSecrets: true)["password"] == "hunter2")
    }

    @Test func `JSON of a value that no layout has tells what is wrong, and does not trap`() throws {
        let command = CompanionCommand.setCustomVariable(CustomVariable(name: "a:b", value: "c"))
        #expect(command.json()["error"] == "variable: not allowed here")
    }
}
