// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshTestSupport
import Testing

/// Inputs of the D-Bus fuzzer, run by its own check (a link to Tests/Fuzzing): those that once failed, and the corpus, with
/// changes of it. A check that fails ends the process, which names the input in the line before.
struct FuzzCasesTests {
    private static let fuzzing = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fuzzing")

    /// How many changes of each input; `MESHHOST_FUZZ_ROUNDS` says otherwise.
    private static let rounds = ProcessInfo.processInfo.environment["MESHHOST_FUZZ_ROUNDS"].flatMap { Int($0) } ?? 200

    @Test(arguments: ["FailCases", "Corpus"])
    func `messages of a bus pass`(name: String) throws {
        var random = SplitMix(state: 9)
        let folder = Self.fuzzing.appending(path: name).appending(path: "DBus")
        for file in try FileManager.default.contentsOfDirectory(atPath: folder.path()).sorted()
        where !file.hasPrefix(".") {
            let bytes = [UInt8](try Data(contentsOf: folder.appending(path: file)))
            print("fuzz case \(name)/DBus/\(file), \(bytes.count) bytes, and changes from seed \(random.state)")
            bytes.withUnsafeBytes { DBusCheck.run($0) }
            for _ in 0..<Self.rounds { Self.change(bytes, &random).withUnsafeBytes { DBusCheck.run($0) } }
        }
    }

    /// A few bytes changed, which leaves most lengths right.
    private static func change(_ bytes: [UInt8], _ random: inout SplitMix) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
            let index = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 2: bytes[index] = bytes.randomElement(using: &random) ?? 0
            default: bytes.removeLast(min(bytes.count, Int.random(in: 1...8, using: &random)))
            }
        }
        return bytes
    }
}
