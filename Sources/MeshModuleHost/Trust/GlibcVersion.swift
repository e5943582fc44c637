// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CProcess

/// A version of the C library, such as 2.36.
struct GlibcVersion: Comparable, CustomStringConvertible {
    private let numbers: [Int]

    /// From the name of a version of its symbols, such as `GLIBC_2.34`; nil from any other name.
    init?(symbolVersion name: String) {
        // Of what has no number the number is known: packed relocations came with 2.36.
        if name == "GLIBC_ABI_DT_RELR" {
            self.init("2.36")
            return
        }
        guard name.hasPrefix("GLIBC_") else { return nil }
        self.init(String(name.dropFirst(6)))
    }

    init?(_ text: String) {
        let numbers = text.split(separator: ".", omittingEmptySubsequences: false).map { Int($0) }
        guard numbers.count >= 2, numbers.allSatisfy({ $0 != nil }) else { return nil }
        self.numbers = numbers.compactMap(\.self)
    }

    /// That which runs here.
    static var own: GlibcVersion? {
        meshhost_glibc_version().flatMap { GlibcVersion(String(cString: $0)) }
    }

    var description: String { numbers.map { "\($0)" }.joined(separator: ".") }

    static func < (left: GlibcVersion, right: GlibcVersion) -> Bool {
        left.numbers.lexicographicallyPrecedes(right.numbers)
    }
}

extension ELFDynamics {
    /// The newest C library that is asked for; nil where any will do.
    var glibc: GlibcVersion? {
        requirements.compactMap { GlibcVersion(symbolVersion: $0.version) }.max()
    }
}
