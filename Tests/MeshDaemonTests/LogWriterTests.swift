// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshTransportAPI
import Testing

@testable import MeshDaemon

struct LogWriterTests {
    /// A pipe or a pair of sockets; its end for reading does not wait.
    private struct Channel: ~Copyable {
        let reading: Int32
        let writing: Int32

        init(isSocket: Bool) {
            var ends: [Int32] = [-1, -1]
            _ = isSocket ? socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) : pipe(&ends)
            (reading, writing) = (ends[0], ends[1])
            _ = fcntl(reading, F_SETFL, O_NONBLOCK)
        }

        deinit {
            close(reading)
            close(writing)
        }

        func read() -> String {
            var all: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = Glibc.read(reading, &buffer, buffer.count)
                guard count > 0 else { return String(decoding: all, as: UTF8.self) }
                all += buffer[..<count]
            }
        }
    }

    @Test(arguments: [false, true])
    func `what nobody reads is lost and counted, and nothing waits`(_ isSocket: Bool) throws {
        let channel = Channel(isSocket: isSocket)
        let writer = LogWriter(level: .info, environment: ["JOURNAL_STREAM": "1:1"], descriptor: channel.writing)
        let count = 10_000
        for number in 0..<count { writer.sink(.info, "record", [("number", "\(number)")]) }
        let first = channel.read().split(separator: "\n")
        #expect(first.count < count && first.first == "<6>record number=0")
        #expect(first.last == "<6>record number=\(first.count - 1)")
        writer.sink(.notice, "link is up", [])
        writer.sink(.notice, "link is down", [])
        #expect(
            channel.read()
                == "<4>log records were lost count=\(count - first.count)\n<5>link is up\n<5>link is down\n")
        #expect(fcntl(channel.writing, F_GETFL) & O_NONBLOCK == 0)
    }

    @Test func `a record that is too long is cut`() {
        let channel = Channel(isSocket: false)
        let writer = LogWriter(level: .info, environment: [:], descriptor: channel.writing)
        writer.sink(.info, String(repeating: "x", count: 10_000), [])
        let text = channel.read()
        #expect(text.utf8.count == 4_096 && text.hasSuffix("x\n"))
    }
}
