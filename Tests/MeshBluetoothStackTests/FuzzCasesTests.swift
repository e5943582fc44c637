// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshTestSupport
import Testing

/// Inputs of the fuzzers, run by their own checks (links to Tests/Fuzzing): those that once failed, and the corpus. A
/// check that fails ends the process, which names the input in the line before.
struct FuzzCasesTests {
    private static let fuzzing = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fuzzing")

    /// Gives a check every input of its fuzzer, and changes of it: a fuzzer that finds little, but runs with every
    /// test.
    private static func replay(_ fuzzer: String, _ check: (UnsafeRawBufferPointer) -> Void) throws {
        var random = SplitMix(state: 5)
        for kind in ["FailCases", "Corpus"] {
            let folder = fuzzing.appending(path: kind).appending(path: fuzzer)
            for file in try FileManager.default.contentsOfDirectory(atPath: folder.path()).sorted()
            where !file.hasPrefix(".") {
                let bytes = [UInt8](try Data(contentsOf: folder.appending(path: file)))
                print(
                    "fuzz case \(kind)/\(fuzzer)/\(file), \(bytes.count) bytes, and changes from seed \(random.state)")
                bytes.withUnsafeBytes { check($0) }
                for _ in 0..<rounds { change(bytes, &random).withUnsafeBytes { check($0) } }
            }
        }
    }

    /// How many changes of each input; `MESHHOST_FUZZ_ROUNDS` says otherwise.
    private static let rounds = ProcessInfo.processInfo.environment["MESHHOST_FUZZ_ROUNDS"].flatMap { Int($0) } ?? 20

    /// A few bytes changed, taken out, put in or repeated, or the end cut off.
    private static func change(_ bytes: [UInt8], _ random: inout SplitMix) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
            let index = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 2: bytes.remove(at: index)
            case 3: bytes.insert(UInt8.random(in: 0...255, using: &random), at: index)
            case 4: bytes.insert(contentsOf: bytes[index...].prefix(20), at: index)
            default: bytes.removeLast(min(bytes.count, Int.random(in: 1...8, using: &random)))
            }
        }
        return bytes
    }

    @Test func `HCI events`() throws { try Self.replay("HCI") { HCICheck.run($0) } }
    @Test func `data of links`() throws { try Self.replay("ACL") { ACLCheck.run($0) } }
    @Test func `attribute client`() throws { try Self.replay("ATTClient") { ATTClientCheck.run($0) } }
    @Test func `attribute server`() throws { try Self.replay("ATTServer") { ATTServerCheck.run($0) } }
    @Test func `pairing`() throws { try Self.replay("SMP") { SMPCheck.run($0) } }
}
