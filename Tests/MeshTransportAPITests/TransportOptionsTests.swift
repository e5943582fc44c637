// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

struct TransportOptionsTests {
    static let table = [
        OptionSpec("host", .string, default: nil, help: "where the radio is"),
        OptionSpec("max_frame", .int, default: "176", help: "bytes"),
        OptionSpec("reply", .bool, default: "true", help: "whether to answer"),
        OptionSpec("connect_timeout", .duration, default: "10s", help: "how long"),
        OptionSpec("pin", .string, default: "", help: "the PIN", secret: true),
    ]

    @Test func `what is not written has its default`() {
        let (values, issues) = Self.table.resolve(["host": "radio.lan"])
        #expect(issues.isEmpty)
        #expect(values.string("host") == "radio.lan")
        #expect(values.int("max_frame") == 176)
        #expect(values.bool("reply"))
        #expect(values.duration("connect_timeout") == .seconds(10))
        #expect(values.string("pin").isEmpty)
    }

    @Test func `all mistakes are found at once, each with what to write`() {
        let (values, issues) = Self.table.resolve([
            "max_frame": "many", "conect_timeout": "1s", "connect_timeout": 5, "reply": "yes",
        ])
        #expect(issues.map(\.option) == ["host", "max_frame", "reply", "connect_timeout", "conect_timeout"])
        #expect(issues[0].message == "option \"host\" is missing")
        #expect(issues[1].message == "\"many\" is not a whole number")
        #expect(issues[1].hint == "for example 176")
        #expect(issues[3].message == "5 is not a duration such as 250ms, 10s or 5m")
        #expect(issues[4].hint == "did you mean \"connect_timeout\"?")
        #expect(values.int("max_frame") == 176)
    }

    @Test func `what a transport says of sound options is told beside what the table refuses`() {
        let table = [OptionIssue(option: "host", message: "1"), OptionIssue(option: "baud", message: "2")]
        let judgement = [
            OptionIssue(option: "baud", message: "of the default"), OptionIssue(option: "", message: "of all together"),
            OptionIssue(option: "seed", message: "3"),
        ]
        #expect(table.joined(by: judgement).map(\.message) == ["1", "2", "3"])
        #expect([].joined(by: judgement) == judgement)
    }

    @Test func `a secret that is wrong is not shown`() {
        let (_, issues) = Self.table.resolve(["host": "x", "pin": 123_456])
        #expect(issues.count == 1)
        #expect(!issues[0].message.contains("123456"))
    }

    @Test(arguments: [
        ("250ms", Duration.milliseconds(250)), ("10s", .seconds(10)), ("1.5m", .seconds(90)), ("2h", .seconds(7_200)),
        ("1d", .seconds(86_400)), ("0s", .zero),
    ])
    func `a duration reads back as it was written`(_ text: String, _ duration: Duration) {
        #expect(Duration(optionText: text) == duration)
        #expect(Duration(optionText: duration.optionText) == duration)
    }

    @Test(arguments: ["", "s", "10", "10 s", "-1s", "1e3s", ".5s", "5.s", "1.2.3s", "11y", "5000d", "٣s", "10S"])
    func `what is no duration is refused`(_ text: String) {
        #expect(Duration(optionText: text) == nil)
    }

    @Test func `a slip finds the name that was meant, nonsense finds none`() {
        let names = ["connect_timeout", "host", "max_frame"]
        #expect(NearestName.of("hots", among: names) == "host")
        #expect(NearestName.of("conect_timeout", among: names) == "connect_timeout")
        #expect(NearestName.of("Host", among: names) == "host")
        #expect(NearestName.of("zebra", among: names) == nil)
        #expect(NearestName.of("", among: names) == nil)
    }
}
