// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// A module's file, opened and found trustworthy. Owns the descriptor.
///
/// The rules: the file is no symbolic link, is regular, belongs to root or to us and is writable by its owner only; the
/// same holds for every folder on the way to it, save sticky folders of root such as `/tmp`, where others cannot touch
/// what is ours. What is loaded later is this descriptor, not the path, so nothing can be swapped in between.
struct ModuleFile: ~Copyable {
    /// Which file it is, whatever it is called.
    struct Identity: Hashable, Sendable {
        var device: UInt64
        var inode: UInt64
    }

    /// Which file it is, and whether it has been written to since.
    struct Version: Hashable, Sendable {
        var identity: Identity
        var size: Int
        var seconds: Int
        var nanoseconds: Int

        init(_ status: stat) {
            identity = Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
            size = Int(status.st_size)
            seconds = status.st_mtim.tv_sec
            nanoseconds = status.st_mtim.tv_nsec
        }
    }

    let path: String
    let descriptor: Int32
    let status: stat

    deinit {
        close(descriptor)
    }

    /// Opens the file and checks it, its folders, its digest if it is pinned to one, and what its headers say.
    static func open(_ given: String, pin: ModuleDigest? = nil) throws(ModuleRefusal) -> ModuleFile {
        let path = try absolute(given)
        let file = try ModuleFile(opening: try checkFolders(of: path), path: path)
        try file.checkKind()
        try file.checkOwner()
        try file.checkMode()
        // Before anything of it is believed.
        if let pin { try file.check(pin) }
        try file.checkGlibc(file.dynamics())
        return file
    }

    /// Opens the file at `real`, which is called `path` in messages; nothing else of it is checked.
    init(opening real: String, path: String) throws(ModuleRefusal) {
        // O_NONBLOCK: opening a FIFO that somebody put there must not wait for its writer.
        let descriptor = Glibc.open(real, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let code = errno
            throw code == ELOOP
                ? ModuleRefusal(
                    path, "a module may not be a symbolic link", advice: "name the file that it points to")
                : ModuleRefusal(
                    path, "cannot be opened (\(Self.text(code)))", advice: "check the path and its permissions")
        }
        self.init(path: path, descriptor: descriptor)
    }

    private init(path: String, descriptor: Int32) {
        self.path = path
        self.descriptor = descriptor
        // fstat of an open descriptor fails for no reason that could arise here; zeros would fail the check.
        var status = stat()
        _ = fstat(descriptor, &status)
        self.status = status
    }

    /// How many bytes it has.
    var size: Int { Int(status.st_size) }

    var identity: Identity { Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino)) }

    var version: Version { Version(status) }

    // MARK: Rules

    borrowing func checkKind() throws(ModuleRefusal) {
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw ModuleRefusal(path, "is not a regular file", advice: "name the module's .so file")
        }
    }

    borrowing func checkOwner() throws(ModuleRefusal) {
        try Self.checkOwner(status, of: path, kind: "a module")
    }

    borrowing func checkMode() throws(ModuleRefusal) {
        guard status.st_mode & 0o022 == 0 else {
            throw ModuleRefusal(
                path, "may be changed by others (mode \(Self.octal(status.st_mode)))", advice: "run: chmod go-w \(path)"
            )
        }
    }

    borrowing func check(_ pin: ModuleDigest) throws(ModuleRefusal) {
        try Self.check(digest(), pin, of: path)
    }

    static func check(_ digest: ModuleDigest, _ pin: ModuleDigest, of path: String) throws(ModuleRefusal) {
        guard digest != pin else { return }
        throw ModuleRefusal(
            path, "is not the file that is pinned: its SHA-256 is \(digest.short), sha256 says \(pin.short)",
            advice: "install that file again, or pin this one: meshhost modules verify \(path)")
    }

    borrowing func digest() throws(ModuleRefusal) -> ModuleDigest {
        try ModuleDigest.ofFile(descriptor, path: path)
    }

    /// What it needs and exports, if it is a library for this machine.
    borrowing func dynamics() throws(ModuleRefusal) -> ELFDynamics {
        let file = ELFFile(descriptor: descriptor, size: size)
        let segments = try ELFHeader.check(file, path: path)
        guard let dynamics = ELFDynamics(file, segments) else {
            throw ModuleRefusal(
                path, "has no dynamic section that can be read",
                advice: "link the module with -shared, or install it again")
        }
        return dynamics
    }

    /// The dynamic linker would refuse it, too, and with many words.
    borrowing func checkGlibc(_ dynamics: ELFDynamics) throws(ModuleRefusal) {
        guard let needed = dynamics.glibc, let own = GlibcVersion.own, own < needed else { return }
        throw ModuleRefusal(
            path, "needs glibc \(needed), this system has \(own)",
            advice: "install its build for this system, or update the system")
    }

    // MARK: Folders

    /// Checks the folders on the way to the file. Returns its path without links in them.
    static func checkFolders(of path: String) throws(ModuleRefusal) -> String {
        let slash = path.lastIndex(of: "/")!
        return try checkFolders(String(path[..<slash]), of: path) + path[slash...]
    }

    /// Walks to `folder` from the root, checks each folder and follows links, whose own folders have been checked by
    /// then. Returns the path without links.
    static func checkFolders(_ folder: String, of path: String) throws(ModuleRefusal) -> String {
        var resolved = ""
        try checkFolder("/", of: path)
        var rest = folder.split(separator: "/").map(String.init)
        var links = 0
        while !rest.isEmpty {
            let name = rest.removeFirst()
            if name == "." { continue }
            if name == ".." {
                resolved = resolved.lastIndex(of: "/").map { String(resolved[..<$0]) } ?? ""
                continue
            }
            let next = "\(resolved)/\(name)"
            var status = stat()
            guard lstat(next, &status) == 0 else {
                throw ModuleRefusal(path, "\(next): \(text(errno))", advice: "check the path and its permissions")
            }
            guard status.st_mode & S_IFMT == S_IFLNK else {
                try checkFolder(next, of: path)
                resolved = next
                continue
            }
            links += 1
            guard links <= 40, let target = linkTarget(next) else {
                throw ModuleRefusal(path, "\(next) is a link that leads nowhere", advice: "name the real folder")
            }
            try checkOwner(status, of: path, kind: "the link \(next)")
            if target.hasPrefix("/") { resolved = "" }
            rest = target.split(separator: "/").map(String.init) + rest
        }
        return resolved
    }

    private static func checkFolder(_ folder: String, of path: String) throws(ModuleRefusal) {
        var status = stat()
        guard lstat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw ModuleRefusal(path, "\(folder) is not a folder", advice: "check the path")
        }
        try checkOwner(status, of: path, kind: "its folder \(folder)")
        let isSticky = status.st_mode & S_ISVTX != 0 && status.st_uid == 0
        guard status.st_mode & 0o022 == 0 || isSticky else {
            throw ModuleRefusal(
                path, "its folder \(folder) may be changed by others (mode \(octal(status.st_mode)))",
                advice: "run: chmod go-w \(folder)")
        }
    }

    static func checkOwner(_ status: stat, of path: String, kind: String) throws(ModuleRefusal) {
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            throw ModuleRefusal(
                path, "\(kind) must belong to root or to uid \(geteuid()), not to uid \(status.st_uid)",
                advice: "change the owner with chown")
        }
    }

    // MARK: Text

    static func absolute(_ path: String) throws(ModuleRefusal) -> String {
        guard !path.isEmpty, !path.utf8.contains(0), !path.hasSuffix("/") else {
            throw ModuleRefusal("\"\(path)\"", "is not the path of a file", advice: "name the module's .so file")
        }
        if path.hasPrefix("/") { return path }
        guard let folder = getcwd(nil, 0) else {
            throw ModuleRefusal(path, "the working folder is gone", advice: "name the absolute path")
        }
        defer { free(folder) }
        return "\(String(cString: folder))/\(path)"
    }

    static func linkTarget(_ path: String) -> String? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = buffer.withUnsafeMutableBytes {
            readlink(path, $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
        }
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }

    static func octal(_ mode: mode_t) -> String {
        let digits = String(mode & 0o7777, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    static func text(_ code: Int32) -> String { String(cString: strerror(code)) }
}
