// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshTransportAPI

/// The folder with what must survive a restart, and the lock that makes this daemon its only user.
final class StateDirectory {
    let path: String
    private let lock: Int32

    /// Makes the folder (mode 0700) if it is missing, and locks it. Throws ``MeshError/Code-swift.struct/serviceUnavailable``
    /// when another daemon has it, and ``MeshError/Code-swift.struct/configurationInvalid`` for one that others could change.
    init(_ path: String) throws(MeshError) {
        self.path = path
        try Self.create(path)
        let file = "\(path)/lock"
        lock = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        // From here on a throw runs `deinit`, which closes the descriptor: every stored property has its value.
        guard lock >= 0 else { throw Self.error("cannot open \(file)", errno) }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            throw MeshError(
                .serviceUnavailable,
                "another meshhost is running with the state folder \(path); stop it, or set daemon.state_dir")
        }
    }

    deinit {
        close(lock)
    }

    /// Makes a folder and its missing parents, readable for this user only.
    private static func create(_ path: String) throws(MeshError) {
        var part = ""
        for name in path.split(separator: "/") {
            part += "/\(name)"
            guard mkdir(part, 0o700) != 0, errno != EEXIST else { continue }
            throw error("cannot make the state folder \(part)", errno)
        }
        let doubts: [StateFolderTrust.Doubt]
        do throws(SystemError) {
            guard try PathFacts(path)?.kind == .folder else { throw SystemError(number: ENOTDIR) }
            doubts = try StateFolderTrust().doubts(path)
        } catch {
            throw Self.error("cannot use the state folder \(path)", error.number)
        }
        if let doubt = doubts.first(where: \.isRefusal) {
            throw MeshError(.configurationInvalid, "\(doubt.message); \(doubt.advice)")
        }
    }

    private static func error(_ what: String, _ reason: Int32) -> MeshError {
        let code: MeshError.Code =
            switch reason {
            case EACCES, EPERM, EROFS: .permissionDenied
            case EEXIST, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR: .configurationInvalid
            default: .storageFailed
            }
        return MeshError(
            code, "\(what): \(String(cString: strerror(reason))); set daemon.state_dir to a folder of this user")
    }
}
