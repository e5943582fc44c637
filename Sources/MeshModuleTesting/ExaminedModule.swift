// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import Glibc
internal import MeshTransportAPI

/// Why a rule ends early.
enum RuleEnd: Error {
    /// What happened instead.
    case broken(String)
    /// What has not come, and for how long.
    case overdue(String)
    /// What it would take to try it.
    case skipped(String)
    /// Why there is no link to try it on.
    case unreachable(String)
    /// Why it says nothing about this module.
    case inapplicable(String)
}

/// A module as it lies in the process, believed as little as possible: what of its description can be read, and what is
/// wrong with the rest.
struct ExaminedModule {
    let path: String
    let info: UnsafePointer<mh_transport_info>
    let entry: Entry
    /// Its functions; those it lacks are null.
    let ops: mh_transport_ops
    let name: String
    let options: [OptionSpec]

    typealias Entry = @convention(c) () -> UnsafePointer<mh_transport_info>?

    /// Loads the file and reads what every rule needs.
    init(path: String) throws(RuleEnd) {
        self.path = path
        guard let library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) else {
            let reason = dlerror().map { String(cString: $0) } ?? "unknown reason"
            throw .broken("the dynamic linker refuses it: \(reason)")
        }
        guard let symbol = dlsym(library, MH_ENTRY_SYMBOL) else {
            throw .broken("it does not export \(MH_ENTRY_SYMBOL)")
        }
        entry = unsafeBitCast(symbol, to: Entry.self)
        guard let info = entry() else { throw .broken("\(MH_ENTRY_SYMBOL) returned no description") }
        self.info = info
        let size = Int(info.pointee.struct_size)
        guard size >= MemoryLayout<mh_transport_info>.size else {
            throw .broken("the description has \(size) bytes of \(MemoryLayout<mh_transport_info>.size)")
        }
        guard info.pointee.abi_major == MH_ABI_MAJOR else {
            throw .broken("it is built for ABI major \(info.pointee.abi_major), this host has \(MH_ABI_MAJOR)")
        }
        guard let name = info.pointee.name else { throw .broken("the description has no name") }
        self.name = String(cString: name)
        ops = try Self.ops(info.pointee.ops)
        options = try Self.options(info.pointee)
    }

    func has(_ capability: UInt64) -> Bool { info.pointee.caps & capability != 0 }

    private static func ops(_ pointer: UnsafePointer<mh_transport_ops>?) throws(RuleEnd) -> mh_transport_ops {
        guard let pointer else { throw .broken("the description has no functions") }
        let size = Int(pointer.pointee.struct_size)
        // Where ABI 1.0 ended.
        let needed = MemoryLayout<mh_transport_ops>.offset(of: \.rx_ready)!
        guard size >= needed else { throw .broken("the function table has \(size) bytes of \(needed)") }
        var ops = mh_transport_ops()
        withUnsafeMutableBytes(of: &ops) { own in
            let theirs = UnsafeRawBufferPointer(start: pointer, count: size)
            own.copyMemory(from: UnsafeRawBufferPointer(rebasing: theirs.prefix(own.count)))
        }
        let functions: [(String, Bool)] = [
            ("create", ops.create != nil), ("start", ops.start != nil), ("connect", ops.connect != nil),
            ("send", ops.send != nil), ("disconnect", ops.disconnect != nil), ("stop", ops.stop != nil),
            ("destroy", ops.destroy != nil),
        ]
        if let missing = functions.first(where: { !$0.1 }) { throw .broken("it lacks the function \(missing.0)") }
        return ops
    }

    private static func options(_ info: mh_transport_info) throws(RuleEnd) -> [OptionSpec] {
        guard info.option_count <= 256, info.option_count == 0 || info.options != nil else {
            throw .broken("the option table has \(info.option_count) rows and cannot be read")
        }
        var specs: [OptionSpec] = []
        for index in 0..<info.option_count {
            guard let option = info.options[index]?.pointee else {
                throw .broken("row \(index) of the options is null")
            }
            guard option.struct_size >= MemoryLayout<mh_option>.size, let name = option.name, let help = option.help
            else { throw .broken("row \(index) of the options is too short, or has no name or help") }
            let kinds: [Int32: OptionSpec.Kind] = [
                MH_OPT_STRING: .string, MH_OPT_INT: .int, MH_OPT_BOOL: .bool, MH_OPT_DURATION: .duration,
            ]
            guard let kind = kinds[option.type] else {
                throw .broken("option \(String(cString: name)) has the type \(option.type), which is none")
            }
            specs.append(
                OptionSpec(
                    String(cString: name), kind, default: option.default_text.map { String(cString: $0) },
                    help: String(cString: help), secret: option.secret != 0))
        }
        return specs
    }
}

/// Lends `text` for one call.
func withABI<Result>(_ text: String, _ body: (mh_str) -> Result) -> Result {
    var copy = text
    return copy.withUTF8 { bytes in
        bytes.withMemoryRebound(to: CChar.self) { body(mh_str(ptr: $0.baseAddress, len: $0.count)) }
    }
}

/// Lends `bytes` for one call.
func withABI<Result>(_ bytes: [UInt8], _ body: (mh_bytes) -> Result) -> Result {
    bytes.withUnsafeBufferPointer { body(mh_bytes(ptr: $0.baseAddress, len: $0.count)) }
}

/// What a function puts into its sink, for one call.
final class SinkChunks {
    private(set) var list: [[UInt8]] = []
    private var count = 0

    fileprivate func append(_ chunk: mh_bytes) {
        // One that talks without end is cut off.
        guard let start = chunk.ptr, chunk.len <= (1 << 20) - count else { return }
        count += chunk.len
        list.append(Array(UnsafeBufferPointer(start: start, count: chunk.len)))
    }

    var text: String { String(decoding: list.joined(), as: UTF8.self) }

    /// Calls a function that has a sink.
    static func collect(_ body: (mh_sink, UnsafeMutableRawPointer) -> mh_status) -> (mh_status, SinkChunks) {
        let chunks = SinkChunks()
        let status = withExtendedLifetime(chunks) { body(testSink, Unmanaged.passUnretained(chunks).toOpaque()) }
        return (status, chunks)
    }
}

private func testSink(_ context: UnsafeMutableRawPointer?, _ chunk: mh_bytes) {
    guard let context else { return }
    Unmanaged<SinkChunks>.fromOpaque(context).takeUnretainedValue().append(chunk)
}
