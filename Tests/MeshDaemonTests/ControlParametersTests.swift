// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshDaemon

struct ControlParametersTests {
    @Test func `what is there is read, what is missing or null is nil`() throws {
        let params = try ControlParameters(["name": "roof", "for_ms": 5, "types": ["link", "advert"], "since": nil])
        #expect(try params.text("name") == "roof")
        #expect(try params.text("verb") == nil)
        #expect(try params.number("for_ms", 0...10) == 5)
        #expect(try params.number("since", 0...10) == nil)
        #expect(try params.texts("types") == ["link", "advert"])
        #expect(try params.texts("device") == nil)
        #expect(throws: Never.self) { _ = try ControlParameters(.null) }
    }

    static let wrong: [(String, JSONValue)] = [
        ("for_ms", .double(1.5)), ("for_ms", 11), ("for_ms", -1), ("for_ms", "1"), ("verb", 5), ("verb", []),
        ("types", "link"), ("types", [1]),
    ]

    @Test(arguments: wrong)
    func `one of another type is named`(_ name: String, _ value: JSONValue) throws {
        let params = try ControlParameters(.object([name: value]))
        let error = #expect(throws: MeshError.self) {
            switch name {
            case "for_ms": _ = try params.number(name, 0...10)
            case "types": _ = try params.texts(name)
            default: _ = try params.text(name)
            }
        }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.hasPrefix("the parameter \"\(name)\" takes ") == true)
    }

    @Test func `the parameters are an object`() {
        #expect(throws: MeshError.self) { _ = try ControlParameters([1]) }
    }

    @Test(arguments: [
        ("adverts", "did you mean \"advert\"?"), ("link.redy", "did you mean \"link.ready\"?"),
        ("lnk.ready", "did you mean \"link\"?"), ("config.written", "there are config.reload"),
        ("advert.new", "did you mean \"advert\"?"),
    ])
    func `an event type that no event has is refused, with the nearest`(_ type: String, _ advice: String) throws {
        #expect(throws: Never.self) { try EventFamilies.check(["link", "link.ready", "frame.rx", "advert"]) }
        let error = #expect(throws: MeshError.self) { try EventFamilies.check(["link", type]) }
        #expect(error?.message == "there are no events of type \"\(type)\"; \(advice)")
    }

    @Test(arguments: [
        (Duration.seconds(1), Int64(1_000)), (.microseconds(-1_999), -1), (.seconds(Int64.max), .max),
        (.seconds(Int64.min), .min), (.milliseconds(Int64.max), .max),
    ])
    func `any duration has milliseconds`(_ duration: Duration, _ milliseconds: Int64) {
        #expect(duration.milliseconds == milliseconds)
    }
}
