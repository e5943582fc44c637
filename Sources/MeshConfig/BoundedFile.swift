// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshTransportAPI

/// A small regular file, read whole.
struct BoundedFile {
    var bytes: [UInt8]
    var isReadableByOthers: Bool

    /// Why a file was not read. The description continues a sentence that begins with the path.
    enum Problem: Error, CustomStringConvertible {
        case missing
        case notPermitted
        case notRegular
        case tooLong(maximum: Int)
        case failed(errno: Int32)

        var description: String {
            switch self {
            case .missing: "does not exist"
            case .notPermitted: "cannot be read: permission denied"
            case .notRegular: "is not a regular file"
            case .tooLong(let maximum): "is longer than \(maximum / 1024) KiB"
            case .failed(let code): "cannot be read: \(String(cString: strerror(code)))"
            }
        }

        /// What it means for whoever needs the file.
        var code: MeshError.Code {
            if case .notPermitted = self { .permissionDenied } else { .configurationInvalid }
        }

        init(errno code: Int32) {
            switch code {
            case ENOENT, ENOTDIR: self = .missing
            case EACCES, EPERM: self = .notPermitted
            default: self = .failed(errno: code)
            }
        }
    }

    init(path: String, maximumLength: Int) throws(Problem) {
        // Without O_NONBLOCK a FIFO would block here for ever.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw Problem(errno: errno) }
        defer { close(descriptor) }

        var facts = stat()
        guard fstat(descriptor, &facts) == 0 else { throw Problem(errno: errno) }
        guard facts.st_mode & S_IFMT == S_IFREG else { throw .notRegular }
        isReadableByOthers = facts.st_mode & S_IROTH != 0

        // The file may grow meanwhile, so the bound holds for what was read and not for what `fstat` says.
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Problem(errno: errno) }
            if count == 0 { break }
            bytes.append(contentsOf: chunk.prefix(count))
            guard bytes.count <= maximumLength else { throw .tooLong(maximum: maximumLength) }
        }
        self.bytes = bytes
    }
}
