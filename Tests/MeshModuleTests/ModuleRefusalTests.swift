// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshTransportAPI
import Testing

@testable import MeshModuleHost

@Suite struct ModuleRefusalTests {
    private let folder = TemporaryFolder()
    private let loader = ModuleLoader(locator: ModuleLocator(only: []))

    private func refusal(_ path: String, name: String = "rude") -> ModuleRefusal? {
        do throws(ModuleRefusal) {
            _ = try loader.load(name, path: path)
            return nil
        } catch {
            #expect(!error.description.contains("\n"))
            return error
        }
    }

    @Test func `a good module is loaded and described`() throws {
        let module = try loader.load("rude", path: Fixture.path("rude"))
        #expect(module.descriptor.version == "0.1.0")
        #expect(module.descriptor.options.map(\.name) == ["mode"])
        #expect(module.abi == "1.2")
        #expect(ModuleStatus(module).capabilities == ["pipelined-reads"])
        #expect(try loader.load("rude", path: Fixture.path("rude")) === module)
        #expect(loader.status(of: "rude", path: Fixture.path("rude")).state == .loaded)
    }

    @Test func `a module for another ABI major is refused with both majors`() {
        let refusal = refusal(Fixture.path("other-major"))
        #expect(refusal?.rule == "is built for ABI major 2, this daemon has ABI 1.2")
    }

    @Test func `a description of another major is refused`() throws {
        let path = try folder.file("a.so", Fixture.rude(major: 3))
        #expect(refusal(path)?.rule == "is built for ABI major 3, this daemon has ABI 1.2")
    }

    @Test func `a module that needs a newer minor is refused with both versions`() throws {
        let path = try folder.file("a.so", Fixture.rude(minorNeeded: 3))
        #expect(refusal(path)?.rule == "needs ABI 1.3, this daemon has ABI 1.2")
    }

    @Test(arguments: [0, 4, 8, 87] as [UInt32])
    func `a description that is too small is refused`(size: UInt32) throws {
        let path = try folder.file("a.so", Fixture.rude(size: size))
        #expect(refusal(path) != nil)
    }

    @Test func `a larger description of a later minor is accepted`() throws {
        let path = try folder.file("a.so", Fixture.rude(size: 96))
        #expect(refusal(path) == nil)
    }

    @Test func `a missing entry symbol is named`() throws {
        let path = try folder.file(
            "a.so", Fixture.rude(replacing: ("mh_transport_entry_v1", "mh_transport_entry_vX"), everywhere: true))
        #expect(refusal(path)?.rule == "does not export mh_transport_entry_v1")
    }

    @Test func `a name that is no module name is refused`() throws {
        let path = try folder.file("a.so", Fixture.rude(replacing: ("rude", "RUDE")))
        #expect(refusal(path)?.rule.hasPrefix("calls itself \"RUDE\", which is no module name") == true)
    }

    @Test func `a module under another's name is refused`() {
        #expect(refusal(Fixture.path("rude"), name: "tcp")?.rule == "is the module \"rude\", not \"tcp\"")
    }

    @Test func `a description with control characters is refused`() throws {
        let path = try folder.file("a.so", Fixture.rude(replacing: ("fixture vendor", "fixture\nvendor")))
        #expect(refusal(path)?.rule == "the vendor in its description is not printable ASCII")
    }

    @Test func `a truncated file is refused at every length`() throws {
        let bytes = try Fixture.bytes("rude")
        for length in [0, 3, 16, 63, 64, 100, 1_000, bytes.count / 2, bytes.count - 1] {
            let path = try folder.file("t\(length).so", Array(bytes[..<length]))
            #expect(refusal(path)?.rule == "is truncated (\(length) bytes)", "at \(length)")
        }
    }

    @Test func `a file for another machine or class is refused`() throws {
        var bytes = try Fixture.bytes("rude")
        bytes[18] = 8  // MIPS
        #expect(refusal(try folder.file("m.so", bytes))?.rule.hasPrefix("is built for another machine") == true)
        bytes = try Fixture.bytes("rude")
        bytes[4] = 1
        #expect(refusal(try folder.file("c.so", bytes))?.rule.hasPrefix("is not built for 64-bit") == true)
    }

    @Test func `a text file is refused`() throws {
        let path = try folder.file("a.so", Array("#!/bin/sh\necho hello\n".utf8))
        #expect(refusal(path)?.rule == "is not an ELF shared object")
    }

    @Test(arguments: [0o664, 0o646, 0o777] as [mode_t])
    func `a file that others may write is refused with its mode`(mode: mode_t) throws {
        let path = try folder.file("a.so", Fixture.bytes("rude"), mode: mode)
        let refusal = refusal(path)
        #expect(refusal?.rule == "may be changed by others (mode 0\(String(mode, radix: 8)))")
        #expect(refusal?.advice == "run: chmod go-w \(path)")
    }

    @Test func `a folder that others may write is refused`() throws {
        let path = try folder.file("a.so", Fixture.bytes("rude"))
        chmod(folder.path, 0o775)
        #expect(refusal(path)?.rule == "its folder \(folder.path) may be changed by others (mode 0775)")
        chmod(folder.path, 0o755)
        #expect(refusal(path) == nil)
    }

    @Test func `a symbolic link to a module is refused, one to its folder is followed`() throws {
        let path = try folder.file("a.so", Fixture.bytes("rude"))
        symlink(path, "\(folder.path)/link.so")
        #expect(refusal("\(folder.path)/link.so")?.rule == "a module may not be a symbolic link")
        let other = TemporaryFolder()
        symlink(folder.path, "\(other.path)/modules")
        #expect(refusal("\(other.path)/modules/a.so") == nil)
    }

    @Test func `a FIFO is refused without waiting`() {
        let path = "\(folder.path)/a.so"
        mkfifo(path, 0o600)
        #expect(refusal(path)?.rule == "is not a regular file")
    }

    @Test(.enabled(if: geteuid() == 0, "needs root to give a file away"))
    func `a file of somebody else is refused`() throws {
        let path = try folder.file("a.so", Fixture.bytes("rude"))
        chown(path, 12_345, 0)
        #expect(refusal(path)?.rule == "a module must belong to root or to uid 0, not to uid 12345")
    }

    @Test func `a missing file is refused`() {
        #expect(refusal("\(folder.path)/none.so")?.rule == "cannot be opened (No such file or directory)")
        #expect(loader.status(of: "rude", path: "\(folder.path)/none.so").state == .refused)
    }

    @Test func `two modules that are opened one after the other are two modules`() throws {
        // The linker knows libraries by path; both are opened through /proc/self/fd.
        let first = try loader.load("scripted", path: Fixture.path("scripted"))
        let second = try loader.load("rude", path: Fixture.path("rude"))
        #expect(first.descriptor.name == "scripted")
        #expect(second.descriptor.name == "rude")
    }
}

@Suite struct ModuleLocatorTests {
    private let folder = TemporaryFolder()

    @Test func `modules are found by each accepted file name, in search order`() throws {
        let later = TemporaryFolder()
        _ = try later.file("alpha.so", [1])
        _ = try folder.file("meshhost-alpha.so", [1])
        _ = try folder.file("libmeshhost-beta.so", [1])
        _ = try folder.file("libother.so.1", [1])
        _ = try folder.file("Upper.so", [1])
        let locator = ModuleLocator(only: [folder.path, later.path])
        #expect(locator.path(ofModule: "alpha") == "\(folder.path)/meshhost-alpha.so")
        #expect(locator.path(ofModule: "beta") == "\(folder.path)/libmeshhost-beta.so")
        #expect(locator.path(ofModule: "gamma") == nil)
        #expect(locator.path(ofModule: "../alpha") == nil)
        #expect(locator.installed().map(\.name) == ["alpha", "beta"])
    }

    @Test func `statuses tell found, missing and refused apart without loading`() throws {
        _ = try folder.file("rude.so", Fixture.bytes("rude"))
        _ = try folder.file("acme.so", [0x7F])
        let loader = ModuleLoader(locator: ModuleLocator(only: [folder.path]))
        #expect(loader.status(of: "rude").state == .found)
        #expect(loader.status(of: "acme").state == .refused)
        let missing = loader.status(of: "lora")
        #expect(missing.state == .missing)
        #expect(missing.reason?.contains("use one of: acme, rude") == true)
        #expect(loader.describe("rude").state == .loaded)
        #expect(loader.status(of: "rude").vendor == "fixture vendor")
    }
}
