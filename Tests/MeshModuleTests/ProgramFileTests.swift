// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import Testing

@testable import MeshModuleHost

/// Which programs may be a module.
@Suite struct ProgramFileTests {
    private let folder = TemporaryFolder()

    private func rule(_ path: String) -> String? {
        do throws(ModuleRefusal) {
            _ = try ModuleFile.checkProgram(path)
            return nil
        } catch {
            return error.rule
        }
    }

    @Test func `a program of ours is taken, also through links`() throws {
        let path = try folder.file("tool", [1], mode: 0o755)
        #expect(rule(path) == nil)
        try #require(symlink("tool", folder.path + "/near") == 0)
        try #require(symlink(folder.path + "/near", folder.path + "/far") == 0)
        #expect(rule(folder.path + "/far") == nil)
        #expect(try ModuleFile.checkProgram(folder.path + "/far") == ModuleFile.checkProgram(path))
    }

    @Test func `what others can change, or is no program, is refused`() throws {
        #expect(rule("tool") == "is no absolute path")
        #expect(rule(folder.path + "/none")?.hasPrefix("cannot be found") == true)
        #expect(rule(folder.path) == "is not a program")
        #expect(rule(try folder.file("text", [1], mode: 0o644)) == "is not a program")
        let open = try folder.file("open", [1], mode: 0o777)
        #expect(rule(open)?.hasPrefix("may be changed by others") == true)
        try #require(symlink(open, folder.path + "/link") == 0)
        #expect(rule(folder.path + "/link")?.hasPrefix("may be changed by others") == true)
        try #require(symlink("loop", folder.path + "/loop") == 0)
        #expect(rule(folder.path + "/loop") == "is a link that leads nowhere")
    }

    @Test func `a file that was written to is another version`() throws {
        let path = try folder.file("tool", [1], mode: 0o755)
        let before = try ModuleFile.checkProgram(path)
        _ = try folder.file("tool", [1, 2], mode: 0o755)
        #expect(try ModuleFile.checkProgram(path) != before)
    }
}
