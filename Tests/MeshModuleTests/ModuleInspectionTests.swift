// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshTestSupport
import Testing

@testable import MeshModuleHost

/// Every rule of trust, applied without loading.
@Suite struct ModuleInspectionTests {
    private let folder = TemporaryFolder()

    private func verdicts(_ inspection: ModuleInspection) -> [ModuleInspection.Check: ModuleInspection.Verdict] {
        Dictionary(inspection.findings.map { ($0.check, $0.verdict) }, uniquingKeysWith: { $1 })
    }

    @Test func `a good module keeps every rule, each of which is told once and in order`() {
        let inspection = ModuleInspection(library: Fixture.path("scripted"), name: "scripted")
        #expect(inspection.isTrusted)
        #expect(inspection.findings.map(\.check) == ModuleInspection.Check.allCases)
        #expect(inspection.findings.allSatisfy { $0.verdict == .ok }, "\(inspection.findings)")
        #expect(inspection.findings.last?.text == "mh_transport_entry_v1 alone")
        #expect(inspection.digest != nil && !inspection.isPinned)
    }

    @Test(arguments: ["tcp", "serial", "mock", "bluez", "hci"])
    func `what comes with meshhost exports its entry and nothing else`(name: String) throws {
        let path = try #require(ModuleLocator(only: [ModuleLocator().programFolder ?? "."]).path(ofModule: name))
        let inspection = ModuleInspection(library: path)
        #expect(inspection.findings.last?.text == "mh_transport_entry_v1 alone", "\(inspection.findings)")
        #expect(inspection.isTrusted)
    }

    @Test func `everything that is wrong is told at once`() throws {
        let path = try folder.file("a.so", Fixture.bytes("other-major"), mode: 0o666)
        chmod(folder.path, 0o777)
        let inspection = ModuleInspection(library: path, pin: ModuleDigest(String(repeating: "a", count: 64)))
        #expect(!inspection.isTrusted && inspection.isPinned)
        let refused = verdicts(inspection).filter { $0.value == .refused }.keys
        #expect(Set(refused) == [.mode, .folders, .sha256, .exports], "\(inspection.findings)")
        #expect(inspection.findings.allSatisfy { $0.verdict != .refused || $0.advice != nil })
    }

    @Test func `more symbols than the entry are a warning`() {
        // It is linked without the version script.
        let inspection = ModuleInspection(library: Fixture.path("rude"))
        #expect(inspection.isTrusted)
        #expect(verdicts(inspection)[.exports] == .warning)
    }

    @Test func `what is no file, or no library, ends the look early`() throws {
        #expect(ModuleInspection(library: folder.path + "/none.so").findings.map(\.check) == [.file, .folders])
        #expect(ModuleInspection(library: "").findings.map(\.check) == [.file])
        let fifo = folder.path + "/fifo.so"
        mkfifo(fifo, 0o600)
        #expect(verdicts(ModuleInspection(library: fifo)) == [.file: .refused, .folders: .ok])
        let text = try folder.file("text.so", Array("hello".utf8))
        let inspection = ModuleInspection(library: text)
        #expect(verdicts(inspection)[.machine] == .refused)
        #expect(verdicts(inspection)[.exports] == nil)
        #expect(
            inspection.digest?.description == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")
    }

    @Test func `no length and no damage of a file is too much`() throws {
        let whole = try Fixture.bytes("rude")
        var generator = SplitMix(state: 20)
        for round in 0..<400 {
            var bytes = whole
            if round < 200 {
                bytes.removeLast(Int.random(in: 1..<whole.count, using: &generator))
            } else {
                // Where the headers and the tables of symbols and versions are.
                for _ in 0..<20 {
                    bytes[Int.random(in: 0..<4_096, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
                }
            }
            let path = try folder.file("a.so", bytes)
            let inspection = ModuleInspection(library: path)
            #expect(round >= 200 || !inspection.isTrusted)
        }
    }

    @Test func `a module that is not there says where it was looked for`() {
        let inspection = ModuleInspection(missing: "lora", locator: ModuleLocator(only: [folder.path]))
        #expect(!inspection.isTrusted)
        #expect(inspection.findings.first?.text.contains(folder.path) == true)
    }

    @Test func `a program is looked at as one`() throws {
        let inspection = ModuleInspection(program: "/bin/sh", name: "shell")
        #expect(inspection.isTrusted && inspection.digest != nil)
        #expect(!ModuleInspection(program: try folder.file("tool", [1])).isTrusted)
    }
}
