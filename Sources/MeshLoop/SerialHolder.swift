// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV
internal import Glibc

/// A process that has a serial port open.
public struct SerialHolder: Sendable, Hashable {
    public var processID: Int32
    /// Its name as the kernel has it, up to 15 bytes; empty when it went away.
    public var name: String

    /// Those that have the port open, as far as this user may see: root sees all, others their own processes only. Reads
    /// all of `/proc`, which takes milliseconds: not for the loop's thread.
    public static func all(of path: String) -> [SerialHolder] { all(of: path, except: nil) }

    /// `except`: a descriptor of this process that does not count.
    static func all(of path: String, except ourDescriptor: Int32?) -> [SerialHolder] {
        var port = stat()
        guard stat(path, &port) == 0 else { return [] }
        let ourself = getpid()
        return names(in: "/proc").compactMap { Int32($0) }.sorted().compactMap { process in
            let folder = "/proc/\(process)/fd"
            let has = names(in: folder).contains { entry in
                if process == ourself, let ourDescriptor, entry == "\(ourDescriptor)" { return false }
                var facts = stat()
                return stat("\(folder)/\(entry)", &facts) == 0 && isSamePort(facts, port)
            }
            return has ? SerialHolder(processID: process, name: name(of: process)) : nil
        }
    }

    /// A port may have several nodes, in a container for one. The numbers of pseudo terminals count within their file system.
    private static func isSamePort(_ one: stat, _ other: stat) -> Bool {
        one.st_mode & S_IFMT == S_IFCHR && one.st_rdev == other.st_rdev
            && (!isPseudoTerminal(other) || one.st_dev == other.st_dev)
    }

    /// The numbers of /dev/pts (Linux Documentation/admin-guide/devices.txt: majors 136 to 143).
    static func isPseudoTerminal(_ facts: stat) -> Bool {
        (136...143).contains(facts.st_rdev >> 8 & 0xFFF)
    }

    private static func name(of process: Int32) -> String {
        let descriptor = open("/proc/\(process)/comm", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        return withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
            let count = read(descriptor, buffer.baseAddress, buffer.count)
            return String(decoding: buffer.prefix(max(count, 0)).prefix { $0 != 10 }, as: UTF8.self)
        }
    }

    private static func names(in path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            names.append(
                withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
                })
        }
        return names
    }
}

extension SerialHolder: CustomStringConvertible {
    /// `minicom (process 4711)`, or `another link of this process`.
    public var description: String {
        if processID == getpid() { return "another link of this process" }
        return "\(name.isEmpty ? "a program" : name) (process \(processID))"
    }
}
