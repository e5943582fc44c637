// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshDaemon

struct ControlClientTests {
    @Test func `a daemon that does not answer is given up`() throws {
        let path = "/tmp/meshhost-silent-\(getpid()).sock"
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer {
            close(descriptor)
            unlink(path)
        }
        #expect(atSocketFile(path, bind, descriptor) && listen(descriptor, 0) == 0)
        // The first finds a place in the queue, the second does not; neither is answered.
        var client = try ControlClient(path: path, patience: .milliseconds(20))
        Self.expectSilence(path) { () throws(MeshError) in _ = try client.ask("devices") }
        Self.expectSilence(path) { () throws(MeshError) in
            try client.stream("listen", [:]) { _ in true }
        }
        Self.expectSilence(path) { () throws(MeshError) in
            _ = try ControlClient(path: path, patience: .milliseconds(20))
        }
    }

    private static func expectSilence(_ path: String, _ body: () throws(MeshError) -> Void) {
        do throws(MeshError) {
            try body()
            Issue.record("nothing was thrown")
        } catch {
            #expect(error.code == .serviceUnavailable)
            #expect(error.message.contains("the daemon on \(path) does not answer"))
        }
    }
}
