// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Testing

/// Inputs of the frame decoder's fuzzer, run by its own check (a link to Tests/Fuzzing): those that once failed, and the
/// corpus. A check that fails ends the process, which names the input in the line before.
struct FuzzCasesTests {
    private static let fuzzing = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fuzzing")

    @Test(arguments: ["FailCases", "Corpus"])
    func `the fuzzer's inputs pass`(name: String) throws {
        let folder = Self.fuzzing.appending(path: name).appending(path: "FrameDecoder")
        for file in try FileManager.default.contentsOfDirectory(atPath: folder.path()).sorted()
        where !file.hasPrefix(".") {
            let bytes = try Data(contentsOf: folder.appending(path: file))
            print("fuzz case \(name)/FrameDecoder/\(file), \(bytes.count) bytes")
            bytes.withUnsafeBytes { FrameDecoderCheck.run($0) }
        }
    }
}
