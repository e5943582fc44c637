// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import MeshTransportAPI
import MeshWire
import Testing

@testable import MeshDaemon

struct SightingTests {
    private func seen(
        _ address: String, _ signal: Int?, name: String = "", kind: DeviceKind = .unknown
    ) -> JSONValue {
        Sighting(
            module: "bluez", address: address, name: name, signal: signal, kind: kind, device: nil, advertisement: []
        ).json
    }

    @Test func `the nearest comes first, and one without signal strength last`() {
        var table = SightingTable()
        for (address, signal) in [("b", -80), ("a", -80), ("c", -50), ("d", nil)] as [(String, Int?)] {
            table.take(seen(address, signal), now: .zero)
        }
        #expect(table.json(now: .seconds(2)).map { $0["address"] } == ["c", "a", "b", "d"])
        #expect(table.json(now: .seconds(2))[0]["age_ms"] == 2_000)
    }

    @Test func `a device stands there once, with its newest signal and what was heard of it before`() {
        var table = SightingTable()
        table.take(seen("a", -80, name: "MeshCore-roof", kind: .meshCoreCompanion), now: .zero)
        table.take(seen("a", -60), now: .seconds(1))
        let rows = table.json(now: .seconds(1))
        #expect(rows.count == 1)
        #expect(rows[0]["rssi"] == -60 && rows[0]["seen"] == 2 && rows[0]["age_ms"] == 0)
        #expect(rows[0]["name"] == "MeshCore-roof" && rows[0]["kind"] == "meshcore-companion")
    }

    @Test func `made-up addresses push out the oldest only`() {
        var table = SightingTable()
        for number in 0..<2_000 { table.take(seen("\(number)", -50), now: .milliseconds(number)) }
        let rows = table.json(now: .seconds(3))
        #expect(rows.count == 512)
        #expect(rows.contains { $0["address"] == "1999" } && !rows.contains { $0["address"] == "0" })
    }

    @Test(arguments: [
        ("roof", "roof"), ("\u{1B}[2Jx", "\u{FFFD}[2Jx"), ("a\nb", "a\u{FFFD}b"), ("\u{202E}abc", "\u{FFFD}abc"),
        ("\u{2028}", "\u{FFFD}"), ("Mešhcore 📡", "Mešhcore 📡"),
    ])
    func `text from the air cannot harm a terminal`(_ text: String, _ shown: String) {
        #expect(text.shownFromAir == shown)
    }

    @Test func `text from the air has an end`() {
        #expect(String(repeating: "x", count: 10_000).shownFromAir.count == 64)
    }

    @Test func `configured devices are known by address, else by name`() {
        var config = HostConfig()
        var roof = DeviceConfig(name: "roof", module: "bluez")
        roof.options["address"] = .value("AA:BB")
        var hill = DeviceConfig(name: "hill", module: "bluez")
        hill.options["name"] = .value("MeshCore-hill")
        config.devices = [roof, hill]
        let known = KnownDevices(config)
        func device(_ address: String, _ name: String, module: String = "bluez") -> String? {
            known.sighting(ScanResult(address: address, name: name), module).device
        }
        #expect(device("aa:bb", "") == "roof")
        #expect(device("aa:bb", "", module: "other") == nil)
        #expect(device("cc:dd", "MeshCore-hill") == "hill")
        #expect(device("cc:dd", "") == nil)
    }

    @Test func `configured devices are known by the file that their path leads to`() {
        // On every Linux `/proc/self/root` is a link to `/`, as udev's names are links to ports.
        let link = "/proc/self/root/dev/null"
        var attic = DeviceConfig(name: "attic", module: "serial")
        attic.options["path"] = .value(.string(link))
        var shed = DeviceConfig(name: "shed", module: "serial")
        shed.options["path"] = .value("/dev/unplugged")
        var config = HostConfig()
        config.devices = [attic, shed]
        let known = KnownDevices(config)
        func device(_ address: String, module: String = "serial") -> String? {
            known.sighting(ScanResult(address: address, name: "Acme"), module).device
        }
        #expect(device(link) == "attic")
        #expect(device("/dev/null") == "attic")
        #expect(device("/dev/null", module: "other") == nil)
        #expect(device("/dev/full") == nil)
        #expect(device("/dev/unplugged") == "shed")
        #expect(device("null") == nil)
    }
}

struct DoctorTests {
    private func device(_ why: String?, failures: Int64 = 0, state: DeviceState = .disconnected) -> JSONValue {
        [
            "name": "roof", "state": .string(state.rawValue), "consecutive_failures": .int(failures),
            "last_error": ["message": "the adapter is off"],
            "waiting": why.map { ["why": .string($0), "text": "some text"] } ?? .null,
        ]
    }

    @Test(
        arguments: [
            ("blocked", .problem), ("exhausted", .problem), ("contended", .problem), ("breaker-open", .problem),
            ("adapter", .problem), ("disconnected", .note), ("released", .note), ("slot", .ok), ("ending", .ok),
            ("backoff", .ok),
        ] as [(String, Finding.Severity)])
    func `each reason to wait is judged, with its next step`(_ why: String, _ severity: Finding.Severity) {
        let finding = Doctor.findings(devices: [device(why)])[0].finding
        #expect(finding.severity == severity)
        #expect((finding.advice == nil) == (severity == .ok))
    }

    @Test func `one failure is no problem, and several are`() {
        #expect(Doctor.findings(devices: [device("backoff", failures: 1)])[0].finding.severity == .ok)
        #expect(Doctor.findings(devices: [device("backoff", failures: 2)])[0].finding.severity == .problem)
        let connecting = device(nil, failures: 5, state: .connecting)
        #expect(Doctor.findings(devices: [connecting])[0].finding.severity == .problem)
        #expect(Doctor.findings(devices: [device(nil, state: .ready)])[0].finding == Finding(.ok, "roof", "ready"))
    }

    @Test func `findings are shown with the next step below, and nothing that moves the cursor`() {
        let text = Doctor.text([
            DoctorFinding("config", .ok, "config", "1 devices"),
            DoctorFinding("bluez", .problem, "hci0", "is\u{1B}[2J off", advice: "switch it on"),
        ])
        #expect(
            text == """
                ok       config  config: 1 devices
                problem  bluez   hci0: is\u{FFFD}[2J off
                                 → switch it on

                """)
        #expect(!DoctorFinding.isFine([DoctorFinding("a", .problem, "", "")]))
        #expect(DoctorFinding.isFine([DoctorFinding("a", .note, "", "")]))
    }
}
