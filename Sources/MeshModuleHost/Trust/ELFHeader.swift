// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// The parts of an ELF file that decide whether handing it to the dynamic linker is safe: a file for another machine
/// gets a plain message, and a truncated one would end the process with SIGBUS.
enum ELFHeader {
    /// Checks magic, class, byte order, type and machine, and that all that the headers speak of is inside the file. Returns
    /// what the file has for memory.
    @discardableResult
    static func check(_ file: ELFFile, path: String) throws(ModuleRefusal) -> [ELFSegment] {
        let size = file.size
        let truncated = ModuleRefusal(path, "is truncated (\(size) bytes)", advice: "install the module again")
        guard let ident = file.bytes(at: 0, count: 16), ident[..<4] == [0x7F, 0x45, 0x4C, 0x46] else {
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
                advice: "install the build for \(machine)")
        }
        guard let header = file.value(ELFFileHeader(), at: 0) else { throw truncated }
        guard header.e_machine == ownMachine.number else {
            throw ModuleRefusal(
                path, "is built for another machine (ELF machine \(header.e_machine), this is \(machine))",
                advice: "install the build for \(machine)")
        }
        guard header.e_type == 3 else {  // ET_DYN
            throw ModuleRefusal(path, "is not a shared object", advice: "link the module with -shared")
        }
        let segmentSize = UInt64(MemoryLayout<ELFSegment>.size)
        guard header.e_phentsize == segmentSize, header.e_phnum > 0,
            file.contains(UInt64(header.e_phoff), UInt64(header.e_phnum) * segmentSize),
            file.contains(UInt64(header.e_shoff), UInt64(header.e_shnum) * UInt64(header.e_shentsize))
        else { throw truncated }
        var segments: [ELFSegment] = []
        for index in 0..<UInt64(header.e_phnum) {
            guard let segment = file.value(ELFSegment(), at: UInt64(header.e_phoff) + index * segmentSize),
                file.contains(UInt64(segment.p_offset), UInt64(segment.p_filesz))
            else { throw truncated }
            segments.append(segment)
        }
        return segments
    }

    /// What this machine is called.
    static var machine: String { ownMachine.name }

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
}
