// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshTransportAPI
import Testing

@testable import MeshDaemon

struct StateFolderTrustTests {
    @Test func `a folder of this user that nobody else may write to is fine`() throws {
        let scratch = try Scratch()
        for mode: mode_t in [0o700, 0o755, 0o750] {
            let folder = try scratch.folder("state\(mode)", mode: mode)
            #expect(try StateFolderTrust().doubts(folder) == [])
        }
        #expect(try StateFolderTrust().doubts("\(scratch.path)/none") == [])
    }

    @Test(arguments: [0o777, 0o1777, 0o702] as [mode_t])
    func `a folder that everybody may write to is refused, sticky or not`(mode: mode_t) throws {
        let scratch = try Scratch()
        let folder = try scratch.folder("state", mode: mode)
        let doubts = try StateFolderTrust().doubts(folder)
        #expect(doubts.map(\.isRefusal) == [true])
        #expect(doubts.first?.message == "everybody may write to \(folder) (mode \(String(mode, radix: 8)))")
        let error = #expect(throws: MeshError.self) { _ = try StateDirectory(folder) }
        #expect(error?.code == .configurationInvalid)
        #expect(try scratch.contents.count == 1)
    }

    @Test func `a folder of another user is refused, and one of root is not`() throws {
        let scratch = try Scratch()
        let folder = try scratch.folder("state")
        // Root sees its folders with another's eyes; nobody else can give one away.
        let owner: uid_t = geteuid() == 0 ? 12_345 : geteuid()
        try #require(chown(folder, owner, gid_t.max) == 0)
        #expect(try StateFolderTrust(user: owner).doubts(folder) == [])
        #expect(try StateFolderTrust(user: owner + 1).doubts(folder).map(\.isRefusal) == [true])
        #expect(try StateFolderTrust(user: 12_345).doubts("/etc") == [])
    }

    @Test func `a folder that another group may write to is worth a warning`() throws {
        let scratch = try Scratch()
        let folder = try scratch.folder("state", mode: 0o770)
        let facts = try #require(try PathFacts(folder))
        #expect(try StateFolderTrust(group: facts.group).doubts(folder) == [])
        #expect(try StateFolderTrust(group: facts.group + 1).doubts(folder).map(\.isRefusal) == [false])
    }

    @Test func `a folder that everybody may replace is refused`() throws {
        let scratch = try Scratch()
        let open = try scratch.folder("open", mode: 0o777)
        let folder = try scratch.folder("open/state")
        #expect(try StateFolderTrust().doubts(folder).map(\.advice) == ["run: chmod o-w \(open)"])
        try #require(chmod(open, 0o1777) == 0)
        #expect(try StateFolderTrust().doubts(folder) == [])
    }
}
