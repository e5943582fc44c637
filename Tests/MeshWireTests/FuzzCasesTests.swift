// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Testing

/// Inputs of the fuzzers of this layer, run by their own checks (links to Tests/Fuzzing): those that once failed, and the
/// corpus. A check that fails ends the process, which names the input in the line before.
struct FuzzCasesTests {
    private static let fuzzing = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fuzzing")

    @Test(arguments: ["FailCases", "Corpus"])
    func `the frame decoder's inputs pass`(name: String) throws {
        try forEachInput(name, of: "FrameDecoder") { FrameDecoderCheck.run($0) }
    }

    @Test(arguments: ["FailCases", "Corpus"])
    func `inputs of advertisements pass`(name: String) throws {
        try forEachInput(name, of: "Advertising") { AdvertisingCheck.run($0) }
    }

    @Test(arguments: ["FailCases", "Corpus"])
    func `packets of module processes pass`(name: String) throws {
        try forEachInput(name, of: "ModuleMessage") { ModuleMessageCheck.run($0) }
    }

    private func forEachInput(_ name: String, of fuzzer: String, _ check: (UnsafeRawBufferPointer) -> Void) throws {
        let folder = Self.fuzzing.appending(path: name).appending(path: fuzzer)
        for file in try FileManager.default.contentsOfDirectory(atPath: folder.path()).sorted()
        where !file.hasPrefix(".") {
            let bytes = try Data(contentsOf: folder.appending(path: file))
            print("fuzz case \(name)/\(fuzzer)/\(file), \(bytes.count) bytes")
            bytes.withUnsafeBytes { check($0) }
        }
    }
}
