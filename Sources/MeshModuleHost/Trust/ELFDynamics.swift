// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// What the dynamic section of a shared object says: which libraries it needs in which versions, and what it exports. The
/// layout is that of the System V gABI ("Dynamic Linking") and of the Linux Standard Base ("Symbol Versioning").
struct ELFDynamics {
    /// A version of a library that must be there.
    struct Requirement: Hashable {
        /// Such as `libc.so.6`.
        var library: String
        /// Such as `GLIBC_2.34`.
        var version: String
    }

    /// The libraries that the linker loads with it.
    let libraries: [String]
    /// The versions without which the linker refuses it.
    let requirements: [Requirement]
    private let reader: Reader
    private let tags: [Int64: UInt64]
    private let strings: [UInt8]

    private enum Tag {
        static let needed: Int64 = 1
        static let hash: Int64 = 4
        static let strings: Int64 = 5
        static let symbols: Int64 = 6
        static let stringsSize: Int64 = 10
        static let gnuHash: Int64 = 0x6FFF_FEF5
        static let versionsNeeded: Int64 = 0x6FFF_FFFE
        static let versionsNeededCount: Int64 = 0x6FFF_FFFF
    }

    /// Nil where there is no such section, or one that contradicts the file.
    init?(_ file: ELFFile, _ segments: [ELFSegment]) {
        let reader = Reader(file: file, loaded: segments.filter { $0.p_type == 1 })  // PT_LOAD
        guard let dynamic = segments.first(where: { $0.p_type == 2 }) else { return nil }  // PT_DYNAMIC
        var tags: [Int64: UInt64] = [:]
        var needed: [UInt64] = []
        // Each entry is two words, a tag and a value.
        let wordSize = UInt64(MemoryLayout<UInt>.size)
        for index in 0..<(UInt64(dynamic.p_filesz) / (2 * wordSize)) {
            let place = UInt64(dynamic.p_offset) + index * 2 * wordSize
            guard let tag = file.value(Int(0), at: place).map({ Int64($0) }),
                let value = file.value(UInt(0), at: place + wordSize).map({ UInt64($0) })
            else { return nil }
            if tag == 0 { break }
            if tag == Tag.needed { needed.append(value) } else { tags[tag] = value }
        }
        guard let place = tags[Tag.strings].flatMap(reader.offset), let count = tags[Tag.stringsSize],
            let strings = file.bytes(at: place, count: count)
        else { return nil }
        var libraries: [String] = []
        for name in needed {
            guard let name = Self.text(strings, name) else { return nil }
            libraries.append(name)
        }
        self.libraries = libraries
        guard let requirements = reader.requirements(tags, strings) else { return nil }
        self.requirements = requirements
        (self.reader, self.tags, self.strings) = (reader, tags, strings)
    }

    /// The symbols that it shows to others, sorted; nil where its tables contradict the file.
    func exports() -> [String]? { reader.exports(tags, strings) }

    fileprivate static func text(_ strings: [UInt8], _ index: UInt64) -> String? {
        guard index < UInt64(strings.count), let end = strings[Int(index)...].firstIndex(of: 0) else { return nil }
        return String(decoding: strings[Int(index)..<end], as: UTF8.self)
    }

    /// Follows the addresses of the section to places in the file.
    private struct Reader {
        let file: ELFFile
        let loaded: [ELFSegment]

        /// Where in the file that is which lies at this address in memory.
        func offset(_ address: UInt64) -> UInt64? {
            for segment in loaded where address >= UInt64(segment.p_vaddr) {
                let distance = address - UInt64(segment.p_vaddr)
                if distance < UInt64(segment.p_filesz) { return UInt64(segment.p_offset) + distance }
            }
            return nil
        }

        func requirements(_ tags: [Int64: UInt64], _ strings: [UInt8]) -> [Requirement]? {
            guard let address = tags[Tag.versionsNeeded] else { return [] }
            guard var place = offset(address), let count = tags[Tag.versionsNeededCount] else { return nil }
            var requirements: [Requirement] = []
            // A library needs a handful of others.
            for _ in 0..<min(count, 1_024) {
                guard let needed = file.value(ELFNeededFile(), at: place),
                    let library = ELFDynamics.text(strings, UInt64(needed.vn_file))
                else { return nil }
                var inner = place + UInt64(needed.vn_aux)
                for _ in 0..<needed.vn_cnt {
                    guard let version = file.value(ELFNeededVersion(), at: inner),
                        let name = ELFDynamics.text(strings, UInt64(version.vna_name))
                    else { return nil }
                    // VER_FLG_WEAK: the linker lives without it.
                    if version.vna_flags & 2 == 0 { requirements.append(Requirement(library: library, version: name)) }
                    if version.vna_next == 0 { break }
                    inner += UInt64(version.vna_next)
                }
                if needed.vn_next == 0 { break }
                place += UInt64(needed.vn_next)
            }
            return requirements
        }

        func exports(_ tags: [Int64: UInt64], _ strings: [UInt8]) -> [String]? {
            guard let table = tags[Tag.symbols].flatMap(offset), let count = symbolCount(tags) else { return nil }
            let size = UInt64(MemoryLayout<ELFSymbol>.size)
            var names: [String] = []
            for index in 0..<count {
                guard let symbol = file.value(ELFSymbol(), at: table + index * size) else { return nil }
                // Defined here, neither local nor hidden.
                let (binding, visibility) = (symbol.st_info >> 4, symbol.st_other & 3)
                guard symbol.st_shndx != 0, binding != 0, visibility == 0 || visibility == 3 else { continue }
                guard let name = ELFDynamics.text(strings, UInt64(symbol.st_name)) else { return nil }
                names.append(name)
            }
            return names.sorted()
        }

        /// Nothing says it directly: the hash tables have a place for each.
        private func symbolCount(_ tags: [Int64: UInt64]) -> UInt64? {
            if let table = tags[Tag.hash].flatMap(offset) {
                return file.value(UInt32(0), at: table + 4).map { UInt64($0) }
            }
            guard let table = tags[Tag.gnuHash].flatMap(offset), let buckets = file.value(UInt32(0), at: table),
                let first = file.value(UInt32(0), at: table + 4), let filters = file.value(UInt32(0), at: table + 8)
            else { return nil }
            let bucketTable = table + 16 + UInt64(filters) * UInt64(MemoryLayout<UInt>.size)
            var last = UInt64(0)
            for index in 0..<UInt64(buckets) {
                guard let bucket = file.value(UInt32(0), at: bucketTable + index * 4) else { return nil }
                last = max(last, UInt64(bucket))
            }
            guard last >= UInt64(first) else { return UInt64(first) }
            // The last of a chain has its lowest bit set.
            let chains = bucketTable + UInt64(buckets) * 4
            while let hash = file.value(UInt32(0), at: chains + (last - UInt64(first)) * 4) {
                last += 1
                if hash & 1 != 0 { return last }
            }
            return nil
        }
    }
}
