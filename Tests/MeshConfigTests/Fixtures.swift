// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshConfig

/// The files beside the tests, read where they are in the source tree.
enum Fixtures {
    struct Failure: Error {
        var path: String
        var code: Int32
    }

    /// Whether expected texts are written instead of only compared.
    static var isRecording: Bool { getenv("MESHHOST_RECORD") != nil }

    static let folder = String(#filePath.dropLast("/Fixtures.swift".count))

    static func names(in subfolder: String, suffix: String) -> [String] {
        guard let directory = opendir("\(folder)/\(subfolder)") else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasSuffix(suffix) {
                names.append(name)
            }
        }
        return names.sorted()
    }

    static func bytes(_ path: String) throws -> [UInt8] {
        try ConfigFiles.read("\(folder)/\(path)").bytes
    }

    static func text(_ path: String) throws -> String {
        String(decoding: try bytes(path), as: UTF8.self)
    }

    static func write(_ text: String, to path: String) throws {
        try write(Array(text.utf8), absolute: "\(folder)/\(path)", mode: 0o644)
    }

    static func write(_ bytes: [UInt8], absolute path: String, mode: mode_t) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
        guard descriptor >= 0, fchmod(descriptor, mode) == 0,
            bytes.withUnsafeBytes({ Glibc.write(descriptor, $0.baseAddress, $0.count) }) == bytes.count
        else { throw Failure(path: path, code: errno) }
        close(descriptor)
    }
}

/// A folder that is gone at the end of the test.
struct ScratchFolder: ~Copyable {
    let path: String

    init() throws {
        var template = Array("/tmp/meshhost-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Fixtures.Failure(path: "/tmp", code: errno) }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    func write(_ text: String, to name: String, mode: mode_t = 0o600) throws -> String {
        try Fixtures.write(Array(text.utf8), absolute: "\(path)/\(name)", mode: mode)
        return "\(path)/\(name)"
    }

    func makeFolder(_ name: String) throws {
        guard mkdir("\(path)/\(name)", 0o700) == 0 else { throw Fixtures.Failure(path: name, code: errno) }
    }

    deinit {
        Self.removeAll(at: path)
    }

    private static func removeAll(at path: String) {
        if let directory = opendir(path) {
            while let entry = readdir(directory) {
                let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                    String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
                }
                if name != ".", name != ".." {
                    removeAll(at: "\(path)/\(name)")
                }
            }
            closedir(directory)
        }
        remove(path)
    }
}
