// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshLoop
import MeshTestSupport
import Testing

struct LoopFolderWatchTests {
    @Test func `files that come and go are told of`() async throws {
        try await onLoop { actor in
            let folder = "/tmp/meshhost-watch-\(getpid())"
            #expect(mkdir(folder, 0o700) == 0)
            defer { rmdir(folder) }
            for change in 0..<3 {
                let told = Arrival<Void>(actor.loop)
                let watch = try LoopFolderWatch(actor.loop, folder: folder) { told.arrive(()) }
                switch change {
                case 0: #expect(symlink("nowhere", folder + "/link") == 0)
                case 1: #expect(rename(folder + "/link", folder + "/other") == 0)
                default: #expect(unlink(folder + "/other") == 0)
                }
                await told.get()
                _ = watch
            }
        }
    }

    @Test func `what is no folder cannot be watched`() async throws {
        try await onLoop { actor in
            for path in ["/tmp/meshhost-nothing-\(getpid())", "/etc/passwd"] {
                let error = #expect(throws: LoopError.self) { try LoopFolderWatch(actor.loop, folder: path) {} }
                #expect(error?.operation == "watch \(path)")
            }
        }
    }
}
