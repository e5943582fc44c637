// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// The parts of an ELF file that decide whether handing it to the dynamic linker is safe: a file for another machine
/// gets a plain message, and a truncated one would end the process with SIGBUS.
enum ELFHeader {
    private typealias Header = Elf64_Ehdr
    private typealias Segment = Elf64_Phdr

    /// Checks magic, class, byte order, type and machine, and that all that the headers speak of is inside the file.
    static func check(_ descriptor: Int32, size: Int, path: String) throws(ModuleRefusal) {
        let truncated = ModuleRefusal(path, "is truncated (\(size) bytes)", advice: "install the module again")
        guard let ident = read([UInt8](repeating: 0, count: 16), descriptor, at: 0),
            ident[..<4] == [0x7F, 0x45, 0x4C, 0x46]
        else {
            throw ModuleRefusal(
                path, size < 16 ? "is truncated (\(size) bytes)" : "is not an ELF shared object",
                advice: "install the module again")
        }
        #if _pointerBitWidth(_64)
        let (ownClass, ownBits) = (UInt8(2), "64")
        #else
        let (ownClass, ownBits) = (UInt8(1), "32")
        #endif
        guard ident[4] == ownClass, ident[5] == 1 else {
            throw ModuleRefusal(
                path, "is not built for \(ownBits)-bit little-endian machines",
                advice: "install the build for \(ownMachine.name)")
        }
        #if _pointerBitWidth(_64)
        guard size >= MemoryLayout<Header>.size, let header = value(Header(), descriptor, at: 0) else {
            throw truncated
        }
        guard header.e_machine == ownMachine.number else {
            throw ModuleRefusal(
                path, "is built for another machine (ELF machine \(header.e_machine), this is \(ownMachine.name))",
                advice: "install the build for \(ownMachine.name)")
        }
        guard header.e_type == 3 else {  // ET_DYN
            throw ModuleRefusal(path, "is not a shared object", advice: "link the module with -shared")
        }
        func isInside(_ offset: UInt64, _ length: UInt64) -> Bool {
            let (end, overflow) = offset.addingReportingOverflow(length)
            return !overflow && end <= UInt64(size)
        }
        let segmentSize = UInt64(MemoryLayout<Segment>.size)
        guard header.e_phentsize == segmentSize, header.e_phnum > 0,
            isInside(header.e_phoff, UInt64(header.e_phnum) * segmentSize),
            isInside(header.e_shoff, UInt64(header.e_shnum) * UInt64(header.e_shentsize))
        else { throw truncated }
        for index in 0..<UInt64(header.e_phnum) {
            guard let segment = value(Segment(), descriptor, at: header.e_phoff + index * segmentSize),
                isInside(segment.p_offset, segment.p_filesz)
            else { throw truncated }
        }
        #endif
    }

    private static var ownMachine: (number: UInt16, name: String) {
        #if arch(x86_64)
        (62, "x86-64")
        #elseif arch(arm64)
        (183, "AArch64")
        #elseif arch(riscv64)
        (243, "RISC-V")
        #elseif arch(arm)
        (40, "ARM")
        #elseif arch(i386)
        (3, "x86")
        #else
        (0, "an unknown machine")
        #endif
    }

    private static func read(_ buffer: [UInt8], _ descriptor: Int32, at offset: Int) -> [UInt8]? {
        var buffer = buffer
        let count = buffer.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, off_t(offset)) }
        return count == buffer.count ? buffer : nil
    }

    /// A C struct read from the file. `Value` has no pointers, so that any bytes make one.
    private static func value<Value: BitwiseCopyable>(_ zero: Value, _ descriptor: Int32, at offset: UInt64) -> Value? {
        var value = zero
        let count = withUnsafeMutableBytes(of: &value) { pread(descriptor, $0.baseAddress, $0.count, off_t(offset)) }
        return count == MemoryLayout<Value>.size ? value : nil
    }
}
