// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

extension ModuleFile {
    /// Checks the file of a program that is started by its path: it and its folders as a module's, but it may be a link, as
    /// `/usr/bin/python3` is, whose target is checked instead.
    ///
    /// What is started later is the path: those who could change what it leads to in between are those who may.
    static func checkProgram(_ given: String, pin: ModuleDigest? = nil) throws(ModuleRefusal) -> Version {
        let (real, version) = try program(given)
        if let pin { try check(ModuleFile(opening: real, path: given).digest(), pin, of: given) }
        return version
    }

    /// The digest of a program's file, whose rules are checked, too.
    static func digest(ofProgram given: String) throws(ModuleRefusal) -> ModuleDigest {
        try ModuleFile(opening: try program(given).real, path: given).digest()
    }

    /// The file behind all links.
    private static func program(_ given: String) throws(ModuleRefusal) -> (real: String, version: Version) {
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
            return (real, Version(status))
        }
        throw ModuleRefusal(given, "is a link that leads nowhere", advice: "name the real file")
    }

    /// The version of a file that is given to a program, such as a script; nil where there is none.
    static func version(ofArgument path: String) -> Version? {
        var status = stat()
        guard path.hasPrefix("/"), stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return Version(status)
    }
}
