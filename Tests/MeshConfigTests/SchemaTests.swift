// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import Testing

@Suite struct SchemaTests {
    @Test func `every key is documented`() {
        for section in ConfigSchema.sections {
            #expect(section.help.hasSuffix("."))
            #expect(Set(section.keys.map(\.name)).count == section.keys.count)
            for key in section.keys {
                #expect(key.help.hasSuffix("."))
                #expect(!key.typeText.isEmpty)
                #expect(!(key.isRequired && key.defaultText != nil))
            }
        }
    }

    @Test func `every default can be written in a file and is the default`() throws {
        let lines = ConfigSchema.sections.reduce(into: [String: [String]]()) { lines, section in
            lines[section.header] = section.keys.compactMap { key in key.defaultText.map { "\(key.name) = \($0)" } }
        }
        func body(_ header: String) -> String { (lines[header] ?? []).map { $0 + "\n" }.joined() }
        let device = "[[device]]\nname = \"roof\"\nmodule = \"tcp\"\nhost = \"x\"\n"
        let share = "[[share]]\ntype = \"companion-tcp\"\ndevice = \"roof\"\nlisten = \"127.0.0.1:5000\"\n"
        let written =
            body("") + "[daemon]\n" + body("[daemon]") + "[journal]\n" + body("[journal]") + "[defaults.link]\n"
            + body("[defaults.link]")
            + "[defaults.link.backoff]\n" + body("backoff of [defaults.link]") + device + body("[[device]]")
            + "[device.companion]\n" + body("companion of [[device]]") + share + body("[[share]]")
        let reading = read(written)
        #expect(reading.report == "")
        let plain = try #require(read(device + share).config)
        #expect(ConfigDiff(from: plain, to: try #require(reading.config)).isEmpty)
        #expect(reading.config?.daemon == DaemonConfig())
        #expect(reading.config?.journal == JournalConfig())
        #expect(reading.config?.devices.first?.companion == CompanionConfig())
        #expect(reading.config?.linkDefaults == LinkConfig())
    }

    @Test func `the reference has every section and key`() {
        let reference = ConfigSchema.reference()
        for section in ConfigSchema.sections {
            #expect(reference.contains(section.header))
            for key in section.keys {
                #expect(reference.contains("\n  \(key.name)  ("))
            }
        }
        #expect(reference.contains("  state_dir  (absolute path; default \"/var/lib/meshhost\"; needs a restart)\n"))
        #expect(reference.contains("  max_age  (duration, 1h to 3650d; default \"30d\"; needs a restart)\n"))
        #expect(reference.contains("  name  (a-z, 0-9, _ and -, at most 32; required)\n"))
    }
}
