// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshDaemon

struct ControlProtocolTests {
    static func lines(_ splitter: inout LineSplitter, _ text: String, limit: Int = 100) -> [String]? {
        Array(text.utf8).withUnsafeBytes { splitter.lines(adding: $0, limit: limit) }?
            .map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `lines come whole, however they were cut`() {
        var splitter = LineSplitter()
        #expect(Self.lines(&splitter, "one\ntw") == ["one"])
        #expect(Self.lines(&splitter, "o") == [])
        #expect(Self.lines(&splitter, "\n\nthree\n") == ["two", "", "three"])
    }

    @Test func `a line without end is given up at the limit`() {
        var splitter = LineSplitter()
        #expect(Self.lines(&splitter, String(repeating: "x", count: 10), limit: 10) == [])
        #expect(Self.lines(&splitter, "x", limit: 10) == nil)
    }

    @Test func `a request reads back`() throws {
        let request = ControlProtocol.Request(method: "device", params: ["name": "roof"])
        let read = try ControlProtocol.Request(request.line)
        #expect(read.method == "device" && read.params == ["name": "roof"] && read.id == 1)
        #expect(throws: MeshError.self) { try ControlProtocol.Request(Data("{}".utf8)) }
        #expect(throws: MeshError.self) { try ControlProtocol.Request(Data("devices".utf8)) }
    }
}

struct SystemdNotifierTests {
    @Test func `it tells the service manager, and nobody when there is none`() throws {
        let path = "/tmp/meshhost-notify-\(getpid())"
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        defer {
            close(descriptor)
            unlink(path)
        }
        #expect(atSocketFile(path, bind, descriptor))
        let notifier = SystemdNotifier(environment: ["NOTIFY_SOCKET": path, "WATCHDOG_USEC": "30000000"])
        notifier.ready(status: "1 device")
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        #expect(String(decoding: buffer[..<count], as: UTF8.self) == "READY=1\nSTATUS=1 device")
        #expect(notifier.watchdogInterval == .seconds(15))
        SystemdNotifier(environment: [:]).ready(status: "")
    }

    @Test func `a watchdog of another process is not ours`() {
        let environment = ["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"]
        #expect(SystemdNotifier(environment: environment, pid: 2).watchdogInterval == nil)
        #expect(SystemdNotifier(environment: environment, pid: 1).watchdogInterval == .seconds(15))
        #expect(SystemdNotifier(environment: ["WATCHDOG_USEC": "1"]).watchdogInterval == .milliseconds(1))
    }
}
