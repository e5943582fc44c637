// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshModuleHost

/// Pins, and what is read of a file before it is loaded.
@Suite struct ModuleTrustTests {
    private let folder = TemporaryFolder()
    private let loader = ModuleLoader(locator: ModuleLocator(only: []))
    private let other = ModuleDigest(String(repeating: "0f", count: 32))!

    private func digest(_ path: String) throws -> ModuleDigest {
        try #require(ModuleInspection(library: path).digest)
    }

    private func refusal(_ body: () throws -> Void) -> ModuleRefusal? {
        do {
            try body()
            return nil
        } catch {
            return error as? ModuleRefusal
        }
    }

    @Test func `a digest is read from 64 digits and from nothing else`() {
        let text = String(repeating: "0123456789abcdef", count: 4)
        #expect(ModuleDigest(text)?.description == text)
        #expect(ModuleDigest(text.uppercased())?.description == text)
        for wrong in ["", "00", text.dropLast().description, text + "0", String(text.dropLast()) + "g", text + " "] {
            #expect(ModuleDigest(wrong) == nil, "\(wrong)")
        }
    }

    @Test func `the pinned file is loaded, in this process and in its own`() async throws {
        let path = try folder.file("a.so", Fixture.bytes("rude"))
        let pin = try digest(path)
        #expect(try loader.load("rude", path: path, pin: pin).descriptor.name == "rude")
        try await onLoop { _ in
            let isolated = try IsolatedModule("rude", Self.launch(path, pin))
            #expect(isolated.descriptor.name == "rude")
        }
    }

    @Test func `another file is refused in one line with both digests`() throws {
        let path = try folder.file("a.so", Fixture.bytes("rude"))
        let found = try digest(path)
        let refusal = try #require(self.refusal { _ = try loader.load("rude", path: path, pin: other) })
        #expect(
            refusal.rule
                == "is not the file that is pinned: its SHA-256 is \(found.short), sha256 says 0f0f0f0f0f0f…0f0f")
        #expect(refusal.subject == path)
        #expect(refusal.advice.contains("meshhost modules verify \(path)"))
        #expect(!refusal.description.contains("\n"))
        // No process is started for it.
        let isolated = self.refusal { _ = try IsolatedModule("rude", Self.launch(path, other)) }
        #expect(isolated == refusal)
    }

    @Test func `a pin judges before the headers do`() throws {
        let path = try folder.file("a.so", Array("no library".utf8))
        let refusal = self.refusal { _ = try loader.load("rude", path: path, pin: other) }
        #expect(refusal?.rule.hasPrefix("is not the file that is pinned") == true)
    }

    @Test func `the process looks at the pin itself`() async throws {
        // What the daemon has checked may be another file when the process is started, much later.
        let path = try folder.file("a.so", Fixture.bytes("rude"))
        try await onLoop { _ in
            var probe = try ModuleProbe(Self.launch(path, other))
            let error = #expect(throws: ModuleRefusal.self) { _ = try probe.hello(name: "rude") }
            #expect(error?.rule.hasPrefix("is not the file that is pinned") == true, "\(error?.description ?? "")")
        }
    }

    @Test func `a program is pinned, too`() async throws {
        let script = try folder.file("tool", Array("#!/bin/sh\nexit 3\n".utf8), mode: 0o755)
        let pin = try #require(ModuleInspection(program: script).digest)
        _ = try ModuleFile.checkProgram(script, pin: pin)
        let refused = try #require(refusal { _ = try ModuleFile.checkProgram(script, pin: other) })
        #expect(refused.rule.hasPrefix("is not the file that is pinned"))
        try await onLoop { _ in
            func answer(_ pin: ModuleDigest) -> ModuleRefusal? {
                self.refusal {
                    var probe = try ModuleProbe(Self.launch(.command([script]), pin))
                    _ = try probe.hello(name: "tool")
                }
            }
            #expect(answer(other) == refused)
            // It is started, and is no module.
            #expect(answer(pin)?.rule.hasPrefix("ended before it said what it is") == true)
        }
    }

    @Test func `a section that pins another file wants another module`() async throws {
        let path = try folder.file("a.so", Fixture.bytes("rude"))
        let pin = try digest(path)
        try await onLoop { _ in
            let module = try IsolatedModule("rude", Self.launch(path, nil))
            #expect(module.isCurrent(Self.launch(path, nil)))
            #expect(!module.isCurrent(Self.launch(path, pin)))
        }
    }

    private static func launch(_ path: String, _ pin: ModuleDigest?) -> ModuleLaunch {
        launch(.library(name: "rude", path: path), pin)
    }

    private static func launch(_ program: ModuleLaunch.Program, _ pin: ModuleDigest?) -> ModuleLaunch {
        ModuleLaunch(program, pin: pin, runner: (ModuleLocator().programFolder ?? ".") + "/meshhost")
    }

    // MARK: The C library

    @Test func `a library for a newer glibc is refused with both versions, before the linker sees it`() throws {
        let path = try folder.file("a.so", Fixture.rude(replacing: ("GLIBC_2.2.5", "GLIBC_9.2.5")))
        let own = try #require(GlibcVersion.own)
        let refusal = self.refusal { _ = try loader.load("rude", path: path) }
        #expect(refusal?.rule == "needs glibc 9.2.5, this system has \(own)")
    }

    @Test(
        arguments: [
            ("GLIBC_2.34", "2.34"), ("GLIBC_2.2.5", "2.2.5"), ("GLIBC_ABI_DT_RELR", "2.36"), ("GLIBC_PRIVATE", nil),
            ("GLIBCXX_3.4.30", nil), ("GLIBC_", nil), ("GLIBC_2.", nil),
        ] as [(String, String?)])
    func `versions of symbols name versions of glibc`(symbol: String, version: String?) {
        #expect(GlibcVersion(symbolVersion: symbol)?.description == version)
    }

    @Test func `versions are compared number by number`() throws {
        let versions = try ["2.2.5", "2.9", "2.34", "2.34.1", "10.0"].map { try #require(GlibcVersion($0)) }
        #expect(versions.sorted() == versions)
        #expect(versions.reversed().sorted() == versions)
    }
}
