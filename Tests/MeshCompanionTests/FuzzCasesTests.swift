// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Testing

/// Inputs of the codecs' fuzzers, run by their own checks (links to Tests/Fuzzing): those that once failed, and the
/// corpus. A check that fails ends the process, which names the input in the line before.
struct FuzzCasesTests {
    private static let fuzzing = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fuzzing")

    /// Gives a check every input of its fuzzer.
    private static func replay(_ fuzzer: String, _ check: (UnsafeRawBufferPointer) -> Void) throws {
        for kind in ["FailCases", "Corpus"] {
            let folder = fuzzing.appending(path: kind).appending(path: fuzzer)
            for file in try FileManager.default.contentsOfDirectory(atPath: folder.path()).sorted()
            where !file.hasPrefix(".") {
                let bytes = try Data(contentsOf: folder.appending(path: file))
                print("fuzz case \(kind)/\(fuzzer)/\(file), \(bytes.count) bytes")
                bytes.withUnsafeBytes { check($0) }
            }
        }
    }

    @Test func `companion frames`() throws {
        try Self.replay("Companion") { CompanionFrameCheck.run($0) }
    }

    @Test func `packets`() throws {
        try Self.replay("Packet") { PacketCheck.run($0) }
    }

    @Test func `sensor readings`() throws {
        try Self.replay("LPP") { LPPCheck.run($0) }
    }
}
