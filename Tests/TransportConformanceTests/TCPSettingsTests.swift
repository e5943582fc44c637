// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshLoop
import MeshTCPTransport
import MeshTransportAPI
import Testing

struct TCPSettingsTests {
    @Test(arguments: [
        ("radio.local", "radio.local", 5_000), ("radio:7", "radio", 7), ("192.0.2.1:5001", "192.0.2.1", 5_001),
        ("192.0.2.1", "192.0.2.1", 5_000), ("[2001:db8::1]:6000", "2001:db8::1", 6_000),
        ("[2001:db8::1]", "2001:db8::1", 5_000), ("2001:db8::1", "2001:db8::1", 5_000),
        ("fe80::1%eth0", "fe80::1%eth0", 5_000), ("2001:db8::1:5001", "2001:db8::1:5001", 5_000),
        ("[2001:db8::1:5000]", "2001:db8::1:5000", 5_000), ("1:2:3:4:5:6:7:5000", "1:2:3:4:5:6:7:5000", 5_000),
    ])
    func `an endpoint is read`(text: String, host: String, port: UInt16) throws {
        #expect(try TCPEndpoint(parsing: text) == TCPEndpoint(host: host, port: port))
    }

    @Test(arguments: [
        ("", TCPEndpoint.ParseFailure.empty), (":5000", .empty), ("[]:5000", .empty), ("radio:", .badPort("")),
        ("radio:0", .badPort("0")), ("radio:65536", .badPort("65536")), ("radio:+5", .badPort("+5")),
        ("radio:http", .badPort("http")), ("[::1", .missingBracket), ("[::1]5000", .badPort("5000")),
        ("my radio", .whitespace), ("tcp://1.2.3.4:5000", .scheme(rest: "1.2.3.4:5000")),
        ("http://radio/", .scheme(rest: "radio")),
        ("2001:db8::1:5000", .missingBrackets(host: "2001:db8::1", port: "5000")),
        ("2001:db8::1:50000", .missingBrackets(host: "2001:db8::1", port: "50000")),
        ("1:2:3:4:5:6:7:8:5000", .missingBrackets(host: "1:2:3:4:5:6:7:8", port: "5000")),
        ("fe80::1%eth0:5000", .missingBrackets(host: "fe80::1%eth0", port: "5000")),
        ("1.2.3.4:5000:1", .notIPv6), ("radio:5000:", .notIPv6), ("2001:db8::1:99999", .notIPv6),
    ])
    func `a malformed endpoint is refused`(text: String, failure: TCPEndpoint.ParseFailure) {
        #expect(throws: failure) { try TCPEndpoint(parsing: text) }
    }

    @Test func `an endpoint is written as it is read`() {
        #expect("\(TCPEndpoint(host: "2001:db8::1"))" == "[2001:db8::1]:5000")
        #expect("\(TCPEndpoint(host: "radio", port: 1))" == "radio:1")
    }

    @Test(arguments: [
        ("radio.lan", "radio.lan:5000"), ("Radio.LAN.:5000", "radio.lan:5000"), ("radio.lan:5001", "radio.lan:5001"),
        ("[2001:DB8:0:0::1]:5000", "[2001:db8::1]:5000"), ("2001:db8::1", "[2001:db8::1]:5000"),
        ("192.0.2.1", "192.0.2.1:5000"), ("fe80::1%eth0", "[fe80::1%eth0]:5000"),
    ])
    func `an endpoint is the same however it is written`(text: String, identity: String) async throws {
        let thread = LoopThread()
        let factory = TCPTransportFactory(loop: thread.loop)
        #expect(factory.identity(factory.check(["host": .string(text)]).values) == identity)
        try await thread.shutDown()
    }

    @Test(arguments: [
        ("tcp://1.2.3.4:5000", "write \"1.2.3.4:5000\""),
        ("2001:db8::1:5000", "write \"[2001:db8::1]:5000\", or \"[2001:db8::1:5000]\" for the address alone"),
    ])
    func `an endpoint in another spelling is refused with the right one`(text: String, hint: String) async throws {
        let thread = LoopThread()
        let issues = TCPTransportFactory(loop: thread.loop).check(["host": .string(text)]).issues
        #expect(issues.map(\.hint) == [hint])
        try await thread.shutDown()
    }

    @Test func `options beyond their limits are issues with the option's name`() async throws {
        let thread = LoopThread()
        let factory = TCPTransportFactory(loop: thread.loop)
        let issues = factory.check([
            "host": "radio:x", "connect_timeout": "0s", "keepalive_idle": "100ms", "max_frame": 513,
        ]).issues
        #expect(issues.map(\.option) == ["host", "connect_timeout", "keepalive_idle", "max_frame"])
        #expect(issues.allSatisfy { $0.hint != nil })
        #expect(factory.check(["host": "radio", "max_frame": 512]).issues == [])
        #expect(factory.check([:]).issues.map(\.message) == ["option \"host\" is missing"])
        try await thread.shutDown()
    }
}
