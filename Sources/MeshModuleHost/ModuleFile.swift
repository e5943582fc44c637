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

        fileprivate init(_ status: stat) {
            identity = Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
            size = Int(status.st_size)
            seconds = status.st_mtim.tv_sec
            nanoseconds = status.st_mtim.tv_nsec
        }
    }

    let path: String
    let descriptor: Int32
    private let status: stat

    deinit {
        close(descriptor)
    }

    /// Opens the file and checks it, its folders and its ELF header.
    static func open(_ given: String) throws(ModuleRefusal) -> ModuleFile {
        let path = try absolute(given)
        let slash = path.lastIndex(of: "/")!
        let folder = try checkFolders(String(path[..<slash]), of: path)
        let real = folder + path[slash...]
        // O_NONBLOCK: opening a FIFO that somebody put there must not wait for its writer.
        let descriptor = Glibc.open(real, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let code = errno
            throw code == ELOOP
                ? ModuleRefusal(
                    path, "a module may not be a symbolic link", advice: "name the file that it points to")
                : ModuleRefusal(path, "cannot be opened (\(text(code)))", advice: "check the path and its permissions")
        }
        let file = ModuleFile(path: path, descriptor: descriptor)
        try file.check()
        return file
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

    private borrowing func check() throws(ModuleRefusal) {
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw ModuleRefusal(path, "is not a regular file", advice: "name the module's .so file")
        }
        try Self.checkOwner(status, of: path, kind: "a module")
        guard status.st_mode & 0o022 == 0 else {
            throw ModuleRefusal(
                path, "may be changed by others (mode \(Self.octal(status.st_mode)))", advice: "run: chmod go-w \(path)"
            )
        }
        try ELFHeader.check(descriptor, size: size, path: path)
    }

    // MARK: Programs

    /// Checks the file of a program that is started by its path: it and its folders as a module's, but it may be a link, as
    /// `/usr/bin/python3` is, whose target is checked instead.
    static func checkProgram(_ given: String) throws(ModuleRefusal) -> Version {
        guard given.hasPrefix("/") else {
            throw ModuleRefusal(given, "is no absolute path", advice: "write the program with its whole path")
        }
        var path = given
        for _ in 0..<40 {
            let slash = path.lastIndex(of: "/")!
            let real = try checkFolders(String(path[..<slash]), of: given) + path[slash...]
            var status = stat()
            guard lstat(real, &status) == 0 else {
                throw ModuleRefusal(given, "cannot be found (\(text(errno)))", advice: "check the path")
            }
            if status.st_mode & S_IFMT == S_IFLNK, let target = linkTarget(real) {
                try checkOwner(status, of: given, kind: "the link \(real)")
                path = target.hasPrefix("/") ? target : String(real[...real.lastIndex(of: "/")!]) + target
                continue
            }
            guard status.st_mode & S_IFMT == S_IFREG, access(real, X_OK) == 0 else {
                throw ModuleRefusal(given, "is not a program", advice: "name a file, and run: chmod +x \(given)")
            }
            try checkOwner(status, of: given, kind: "a program")
            guard status.st_mode & 0o022 == 0 else {
                throw ModuleRefusal(
                    given, "may be changed by others (mode \(octal(status.st_mode)))", advice: "run: chmod go-w \(real)"
                )
            }
            return Version(status)
        }
        throw ModuleRefusal(given, "is a link that leads nowhere", advice: "name the real file")
    }

    /// The version of a file that is given to a program, such as a script; nil where there is none.
    static func version(ofArgument path: String) -> Version? {
        var status = stat()
        guard path.hasPrefix("/"), stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return Version(status)
    }

    // MARK: Folders

    /// Walks to `folder` from the root, checks each folder and follows links, whose own folders have been checked by
    /// then. Returns the path without links.
    private static func checkFolders(_ folder: String, of path: String) throws(ModuleRefusal) -> String {
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

    private static func checkOwner(_ status: stat, of path: String, kind: String) throws(ModuleRefusal) {
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            throw ModuleRefusal(
                path, "\(kind) must belong to root or to uid \(geteuid()), not to uid \(status.st_uid)",
                advice: "change the owner with chown")
        }
    }

    // MARK: Text

    private static func absolute(_ path: String) throws(ModuleRefusal) -> String {
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

    private static func linkTarget(_ path: String) -> String? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = buffer.withUnsafeMutableBytes {
            readlink(path, $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
        }
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }

    private static func octal(_ mode: mode_t) -> String {
        let digits = String(mode & 0o7777, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    private static func text(_ code: Int32) -> String { String(cString: strerror(code)) }
}
