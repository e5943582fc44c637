// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import Testing

@testable import MeshLoop

struct ProcessMemoryTests {
    static func code(_ line: String) -> Range<UInt>? { ProcessMemory.codeOfFile(Array(line.utf8CString)) }

    @Test func `only code of files is let go`() {
        // Lines as proc_pid_maps(5) has them.
        let file = "7f12a000-7f12c000 r-xp 00002000 08:01 1234                       /usr/lib/libc.so.6\n"
        #expect(Self.code(file) == 0x7f12_a000..<0x7f12_c000)
        for other in [
            "7f12a000-7f12c000 r--p 00002000 08:01 1234                       /usr/lib/libc.so.6\n",
            "7f12a000-7f12c000 rwxp 00002000 08:01 1234                       /usr/lib/libc.so.6\n",
            "7ffd1000-7ffd3000 r-xp 00000000 00:00 0                          [vdso]\n",
            "7f12a000-7f12c000 r-xp 00000000 00:00 0 \n",
            "7f12c000-7f12a000 r-xp 00002000 08:01 1234 /usr/lib/libc.so.6\n",
            "of/a/long/name r-xp\n", "\n", "",
        ] {
            #expect(Self.code(other) == nil, "\(other)")
        }
    }

    @Test func `the program goes on when its code was let go`() {
        for _ in 0..<3 {
            ProcessMemory.releaseCode()
            #expect((0..<1_000).map { "\($0)" }.joined().count == 2_890)
        }
    }
}
