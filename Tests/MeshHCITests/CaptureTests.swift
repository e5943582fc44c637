// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

struct CaptureTests {
    private static let reset = HCIPacket(kind: .command, bytes: [0x03, 0x0C, 0x00])
    /// 24 bytes of header, the indicator, the packet.
    private static let recordSize = 28

    private static func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "hci-capture-\(UInt64.random(in: 0 ... .max))").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder)
    }

    private static func records(_ path: String) throws -> [BTSnoopFile.Record] {
        let bytes = [UInt8](try #require(FileManager.default.contents(atPath: path)))
        return try BTSnoopFile.decode(bytes.span.bytes)
    }

    @Test func `what does not fit is left out and counted`() throws {
        var buffer = CaptureBuffer(limit: 2 * Self.recordSize)
        for time in 1...5 { buffer.append(Self.reset, isFromController: false, time: Int64(time)) }
        #expect(buffer.drops == 3)
        let first = try BTSnoopFile.decode((BTSnoopFile.header + buffer.take()).span.bytes)
        #expect(first.map(\.time) == [1, 2])
        #expect(first.map(\.drops) == [0, 0])
        #expect(buffer.isEmpty)
        buffer.append(Self.reset, isFromController: false, time: 6)
        let next = try BTSnoopFile.decode((BTSnoopFile.header + buffer.take()).span.bytes)
        #expect(next.map(\.time) == [6])
        #expect(next.map(\.drops) == [3])
    }

    @Test func `a file that is full is kept beside a new one, and only one is`() async throws {
        try await Self.withFolder { folder in
            let path = "\(folder)/capture"
            // Two records fit.
            let settings = CaptureSettings(path: path, limit: 16 + 2 * Self.recordSize)
            var file = try CaptureFile.begin(settings)
            for time in 1...5 {
                var buffer = CaptureBuffer(limit: 1_000)
                buffer.append(Self.reset, isFromController: false, time: Int64(time))
                try file.write(buffer.take())
            }
            file.close()
            #expect(try Self.records(path).map(\.time) == [5])
            #expect(try Self.records(path + ".1").map(\.time) == [3, 4])
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).count == 2)
            try CaptureFile.begin(settings).close()
            #expect(try Self.records(path).isEmpty)
            #expect(try Self.records(path + ".1").map(\.time) == [5])
            for name in [path, path + ".1"] {
                let mode = try FileManager.default.attributesOfItem(atPath: name)[.posixPermissions]
                #expect(mode as? Int == 0o600)
            }
        }
    }

    @Test func `a folder and a link are no place for a capture`() async throws {
        try await Self.withFolder { folder in
            #expect(throws: MeshError.self) { try CaptureFile.begin(CaptureSettings(path: folder, limit: 1_000)) }
            let link = "\(folder)/link"
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "\(folder)/elsewhere")
            #expect(throws: MeshError.self) { try CaptureFile.begin(CaptureSettings(path: link, limit: 1_000)) }
        }
    }

    @Test(arguments: ["capture", "capture.1"]) func `a file that is no capture is kept`(name: String) async throws {
        try await Self.withFolder { folder in
            let path = "\(folder)/capture"
            var file = try CaptureFile.begin(CaptureSettings(path: path, limit: 1_000))
            try file.write([UInt8](repeating: 0, count: Self.recordSize))
            file.close()
            let precious = Data("[daemon]\n".utf8)
            try precious.write(to: URL(filePath: "\(folder)/\(name)"))
            #expect(throws: MeshError.self) { try CaptureFile.begin(CaptureSettings(path: path, limit: 1_000)) }
            #expect(FileManager.default.contents(atPath: "\(folder)/\(name)") == precious)
            // Nothing is lost of an empty one.
            try Data().write(to: URL(filePath: "\(folder)/\(name)"))
            try CaptureFile.begin(CaptureSettings(path: path, limit: 1_000)).close()
        }
    }

    @Test func `what was recorded before the end is in the file`() async throws {
        try await Self.withFolder { folder in
            let path = "\(folder)/capture"
            try await onLoop { actor in
                let capture = HCICapture(actor.loop, CaptureSettings(path: path, limit: 1 << 20), log: .none)
                for count in 1...200 {
                    capture.record(
                        HCIPacket(kind: .acl, bytes: [UInt8](repeating: UInt8(count), count: count)),
                        isFromController: count % 2 == 0)
                    if count % 50 == 0 { await Task.yield() }
                }
                await capture.close()
                // Behind the end nothing is recorded.
                capture.record(Self.reset, isFromController: false)
            }
            let records = try Self.records(path)
            #expect(records.map(\.packet.count) == Array(1...200))
            #expect(records.allSatisfy { $0.kind == .acl && $0.drops == 0 })
            #expect(records.map(\.isFromController) == (1...200).map { $0 % 2 == 0 })
            // In 2024 or later.
            #expect(records.allSatisfy { $0.time > 1_704_067_200_000_000 })
            #expect(zip(records, records.dropFirst()).allSatisfy { $0.time <= $1.time })
        }
    }

    @Test func `a capture that cannot be written harms nobody`() async throws {
        try await onLoop { actor in
            let capture = HCICapture(actor.loop, CaptureSettings(path: "/nowhere/capture", limit: 1 << 20), log: .none)
            capture.record(Self.reset, isFromController: false)
            await capture.close()
            capture.record(Self.reset, isFromController: false)
        }
    }
}
