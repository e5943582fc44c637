// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// What the process holds resident.
public enum ProcessMemory {
    /// Lets go of the pages of code that are mapped now: those of the start are not needed again, and the kernel maps sixteen
    /// for each that is. What is still needed comes back from the page cache at its next use.
    ///
    /// Only mappings that nobody can have written to (`r-xp` of a file, proc_pid_maps(5)): dropping a page loses nothing.
    public static func releaseCode() {
        guard let file = fopen("/proc/self/maps", "re") else { return }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 512)
        while fgets(&line, Int32(line.count), file) != nil {
            guard let code = codeOfFile(line) else { continue }
            madvise(
                UnsafeMutableRawPointer(bitPattern: code.lowerBound), Int(code.upperBound - code.lowerBound),
                MADV_DONTNEED)
        }
    }

    /// The addresses in a line such as `7f12a000-7f12c000 r-xp 00002000 08:01 1234   /usr/lib/libc.so.6`, if it is the code
    /// of a file; nil for any other line, and for the rest of a long one.
    static func codeOfFile(_ line: [CChar]) -> Range<UInt>? {
        let fields = line.prefix { $0 != 0 && $0 != 10 }.split(separator: 32, maxSplits: 5)
        guard fields.count == 6, fields[1].elementsEqual("r-xp".utf8.map(CChar.init)), fields[5].contains(47) else {
            return nil
        }
        let ends = fields[0].split(separator: 45).map {
            UInt(String(decoding: $0.map(UInt8.init), as: UTF8.self), radix: 16)
        }
        guard ends.count == 2, let start = ends[0], let end = ends[1], start < end else { return nil }
        return start..<end
    }
}
