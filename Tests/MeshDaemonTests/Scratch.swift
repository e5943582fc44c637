// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import Testing

/// A folder that is gone at the end of the test.
struct Scratch: ~Copyable {
    let path: String

    init() throws {
        var template = Array("/tmp/meshhost-test-XXXXXX".utf8CString)
        let isMade = template.withUnsafeMutableBufferPointer { mkdtemp($0.baseAddress!) != nil }
        try #require(isMade)
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    func file(_ name: String, _ text: String = "", mode: mode_t = 0o600) throws -> String {
        let file = "\(path)/\(name)"
        try Data(text.utf8).write(to: URL(filePath: file))
        try #require(chmod(file, mode) == 0)
        return file
    }

    func folder(_ name: String, mode: mode_t = 0o700) throws -> String {
        let folder = "\(path)/\(name)"
        try #require(mkdir(folder, mode) == 0 && chmod(folder, mode) == 0)
        return folder
    }

    /// Every file and folder with its mode.
    var contents: [String] {
        get throws {
            try FileManager.default.subpathsOfDirectory(atPath: path).sorted().map { name in
                var facts = stat()
                try #require(lstat("\(path)/\(name)", &facts) == 0)
                return "\(name) \(String(facts.st_mode, radix: 8))"
            }
        }
    }
}
