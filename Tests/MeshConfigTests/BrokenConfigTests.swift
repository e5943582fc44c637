// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import Testing

/// Every file in `Broken` with the exact text that a user gets. With `MESHHOST_RECORD=1` in the environment the tests
/// write the expected texts, to be read by a person before they are committed.
@Suite struct BrokenConfigTests {
    @Test(arguments: Fixtures.names(in: "Broken", suffix: ".toml"))
    func `a broken config gives exactly these diagnostics`(name: String) throws {
        let bytes = try Fixtures.bytes("Broken/\(name)")
        let reading = HostConfig.reading(
            ConfigInput(texts: [ConfigText(path: name, bytes: bytes)]), modules: SampleModule.lookUp)
        let rendered = reading.diagnostics.rendered()
        let expected = "Broken/\(name.dropLast(".toml".count)).expected"
        if Fixtures.isRecording {
            try Fixtures.write(rendered, to: expected)
        }
        #expect(reading.config == nil)
        #expect(try rendered == String(decoding: Fixtures.bytes(expected), as: UTF8.self))
    }

    @Test func `the daemon's socket is found in a broken config, too`() {
        let reading = read(
            """
            [daemon]
            control_socket = "/tmp/control.sock"

            [[device]]
            name = "roof"
            module = "missing"
            """)
        #expect(reading.config == nil)
        #expect(reading.controlSocket == "/tmp/control.sock")
        #expect(read("daemon = 1").controlSocket == DaemonConfig().controlSocket)
        #expect(read("[daemon").controlSocket == DaemonConfig().controlSocket)
    }

    @Test func `there are at least 60 of them`() {
        #expect(Fixtures.names(in: "Broken", suffix: ".toml").count >= 60)
    }
}
