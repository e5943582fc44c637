// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshBluetoothStack
internal import MeshTransportAPI

/// What a user wants recorded.
struct CaptureSettings: Sendable, Hashable {
    var path: String
    /// The most that one file holds, in bytes; there are two.
    var limit: Int
}

/// A capture on disk: a btsnoop file of bounded size, and beside it, with `.1` behind its name, the one before. All of it
/// blocks. One holder at a time writes; it is a value so that it can be handed to the thread that does.
struct CaptureFile: Sendable {
    private let settings: CaptureSettings
    private var descriptor: Int32
    private var size: Int

    /// Begins a file. One that is there is kept under the name of the one before.
    static func begin(_ settings: CaptureSettings) throws(MeshError) -> CaptureFile {
        CaptureFile(settings: settings, descriptor: try open(settings.path), size: BTSnoopFile.header.count)
    }

    /// Writes whole records, to the next file if this one would become too large.
    mutating func write(_ records: [UInt8]) throws(MeshError) {
        if size > BTSnoopFile.header.count, size + records.count > settings.limit {
            let next = try Self.open(settings.path)
            Glibc.close(descriptor)
            descriptor = next
            size = BTSnoopFile.header.count
        }
        size += records.count
        try Self.write(records, to: descriptor, settings.path)
    }

    func close() {
        Glibc.close(descriptor)
    }

    private static func open(_ path: String) throws(MeshError) -> Int32 {
        var facts = stat()
        if lstat(path, &facts) == 0 {
            // Somebody may have mistyped: neither name may hold anything but a capture.
            for path in [path, path + ".1"] { try requireCapture(path) }
            if rename(path, path + ".1") != 0 { throw failure("rename", path) }
        }
        // It holds keys and messages.
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        if descriptor < 0 { throw failure("open", path) }
        do throws(MeshError) {
            try write(BTSnoopFile.header, to: descriptor, path)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
        return descriptor
    }

    /// What is there under this name, if anything, is a capture, or empty.
    private static func requireCapture(_ path: String) throws(MeshError) {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        if descriptor < 0 {
            if errno == ENOENT { return }
            throw failure("open", path)
        }
        defer { Glibc.close(descriptor) }
        var facts = stat()
        var start = [UInt8](repeating: 0, count: BTSnoopFile.identification.count)
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG,
            facts.st_size == 0
                || read(descriptor, &start, start.count) == start.count && start == BTSnoopFile.identification
        else {
            throw MeshError(
                .storageFailed, "\(path) is no Bluetooth capture, and is kept; a capture needs a name of its own")
        }
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32, _ path: String) throws(MeshError) {
        var offset = 0
        while offset < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress! + offset, $0.count - offset) }
            if count < 0 {
                if errno == EINTR { continue }
                throw failure("write", path)
            }
            offset += count
        }
    }

    private static func failure(_ operation: String, _ path: String) -> MeshError {
        MeshError(.storageFailed, "cannot \(operation) \(path): \(String(cString: strerror(errno)))")
    }
}
