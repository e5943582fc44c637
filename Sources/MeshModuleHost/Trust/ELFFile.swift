// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

#if _pointerBitWidth(_64)
typealias ELFFileHeader = Elf64_Ehdr
typealias ELFSegment = Elf64_Phdr
typealias ELFSymbol = Elf64_Sym
typealias ELFNeededFile = Elf64_Verneed
typealias ELFNeededVersion = Elf64_Vernaux
#else
typealias ELFFileHeader = Elf32_Ehdr
typealias ELFSegment = Elf32_Phdr
typealias ELFSymbol = Elf32_Sym
typealias ELFNeededFile = Elf32_Verneed
typealias ELFNeededVersion = Elf32_Vernaux
#endif

/// Reads structures of this machine's ELF out of a file. No read leaves the file, whatever it says of itself.
struct ELFFile {
    /// Borrowed from the module's file.
    let descriptor: Int32
    let size: Int

    /// Whether these bytes are in the file.
    func contains(_ offset: UInt64, _ length: UInt64) -> Bool {
        let (end, overflow) = offset.addingReportingOverflow(length)
        return !overflow && end <= UInt64(size)
    }

    /// A C struct read from the file. `Value` has no pointers, so that any bytes make one.
    func value<Value: BitwiseCopyable>(_ zero: Value, at offset: UInt64) -> Value? {
        guard contains(offset, UInt64(MemoryLayout<Value>.size)) else { return nil }
        var value = zero
        let count = withUnsafeMutableBytes(of: &value) { pread(descriptor, $0.baseAddress, $0.count, off_t(offset)) }
        return count == MemoryLayout<Value>.size ? value : nil
    }

    /// So many bytes.
    func bytes(at offset: UInt64, count: UInt64) -> [UInt8]? {
        guard contains(offset, count) else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(count))
        let read = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, off_t(offset)) }
        return read == bytes.count ? bytes : nil
    }
}
