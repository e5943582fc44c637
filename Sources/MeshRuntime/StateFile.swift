// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
internal import Glibc
public import MeshTransportAPI

/// A small file that is replaced as a whole and is never seen half written. All of it blocks.
public struct StateFile: Sendable {
    /// Larger files are not ours.
    private static let maximumSize = 16 << 20

    let directory: String
    let name: String

    public init(directory: String, name: String) {
        self.directory = directory
        self.name = name
    }

    public var path: String { "\(directory)/\(name)" }
    /// Where a file that cannot be understood is kept.
    public var corruptPath: String { path + ".corrupt" }

    /// The contents; nil if there is no file.
    public func read() throws(MeshError) -> Data? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        if descriptor < 0 {
            if errno == ENOENT { return nil }
            throw failure("read")
        }
        defer { close(descriptor) }
        var contents = Data()
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0 {
                if errno == EINTR { continue }
                throw failure("read")
            }
            if count == 0 { return contents }
            contents.append(contentsOf: chunk[..<count])
            if contents.count > Self.maximumSize {
                throw MeshError(.storageFailed, "\(path) is larger than \(Self.maximumSize) bytes")
            }
        }
    }

    /// Replaces the file. Durable when it returns: the new contents are synced before they get the name, and the directory
    /// after. Mode 0600.
    public func write(_ contents: Data) throws(MeshError) {
        let temporary = path + ".new"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        if descriptor < 0 { throw failure("write") }
        do throws(MeshError) {
            defer { close(descriptor) }
            // An older file of that name may have another mode.
            if fchmod(descriptor, 0o600) != 0 { throw failure("write") }
            try write(contents, to: descriptor)
            if fsync(descriptor) != 0 { throw failure("sync") }
        } catch {
            unlink(temporary)
            throw error
        }
        if rename(temporary, path) != 0 {
            let error = failure("replace")
            unlink(temporary)
            throw error
        }
        try syncDirectory()
    }

    /// Gives a file that cannot be understood another name.
    public func setAside() throws(MeshError) {
        if rename(path, corruptPath) != 0 { throw failure("set aside") }
    }

    private func write(_ contents: Data, to descriptor: Int32) throws(MeshError) {
        let bytes = [UInt8](contents)
        var offset = 0
        while offset < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress! + offset, $0.count - offset) }
            if count < 0 {
                if errno == EINTR { continue }
                throw failure("write")
            }
            offset += count
        }
    }

    private func syncDirectory() throws(MeshError) {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if descriptor < 0 { throw failure("sync the directory of") }
        defer { close(descriptor) }
        if fsync(descriptor) != 0 { throw failure("sync the directory of") }
    }

    private func failure(_ operation: String) -> MeshError {
        let reason = String(cString: strerror(errno))
        return MeshError(
            .storageFailed, "cannot \(operation) \(path): \(reason)",
            context: MeshError.Context(operation: operation))
    }
}
