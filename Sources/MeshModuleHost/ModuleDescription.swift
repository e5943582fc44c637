// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import Glibc
internal import MeshTransportAPI

/// Reads a module's static description with suspicion: sizes first, then versions, then every string.
struct ModuleDescription {
    /// What ABI 1.0 had; structs only grow, so whoever is smaller is broken.
    private static let infoSize = MemoryLayout<mh_transport_info>.size
    private static let opsSize = MemoryLayout<mh_transport_ops>.offset(of: \.rx_ready)!
    private static let optionSize = MemoryLayout<mh_option>.size
    static let optionLimit = 256

    /// The description of the module in the file `path`, which a config calls `name`.
    static func read(
        _ pointer: UnsafePointer<mh_transport_info>?, path: String, name wanted: String?
    ) throws(ModuleRefusal) -> LoadedModule {
        let rebuild = "ask its vendor for a build against meshhost_transport.h"
        guard let pointer else {
            throw ModuleRefusal(path, "\(MH_ENTRY_SYMBOL) returned no description", advice: rebuild)
        }
        let size = Int(pointer.pointee.struct_size)
        // Size and major stand at the same place in every version.
        guard size >= 8, pointer.pointee.abi_major == MH_ABI_MAJOR else {
            throw ModuleRefusal(
                path,
                "is built for ABI major \(size >= 8 ? String(pointer.pointee.abi_major) : "unknown"), "
                    + "this daemon has ABI \(ModuleABI.version)",
                advice: "install the module's build for ABI \(MH_ABI_MAJOR)")
        }
        guard size >= infoSize else {
            throw ModuleRefusal(
                path, "its description has \(size) bytes where ABI \(MH_ABI_MAJOR).0 has \(infoSize)", advice: rebuild)
        }
        let info = pointer.pointee
        guard info.abi_minor_needed <= MH_ABI_MINOR else {
            throw ModuleRefusal(
                path, "needs ABI \(info.abi_major).\(info.abi_minor_needed), this daemon has ABI \(ModuleABI.version)",
                advice: "update meshhost, or install an older build of the module")
        }
        func text(_ field: String, _ text: UnsafePointer<CChar>?) throws(ModuleRefusal) -> String {
            guard let text, let value = string(text), !value.isEmpty,
                value.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
            else {
                throw ModuleRefusal(path, "the \(field) in its description is not printable ASCII", advice: rebuild)
            }
            return value
        }
        let name = try text("name", info.name)
        guard ModuleName.isValid(name) else {
            throw ModuleRefusal(
                path, "calls itself \"\(name)\", which is no module name (\(ModuleName.pattern))", advice: rebuild)
        }
        guard wanted == nil || wanted == name else {
            throw ModuleRefusal(
                path, "is the module \"\(name)\", not \"\(wanted ?? "")\"",
                advice: "write module = \"\(name)\" in the config, or install the right file")
        }
        let descriptor = TransportDescriptor(
            name: name, version: try text("version", info.version), vendor: try text("vendor", info.vendor),
            license: try text("license", info.license), capabilities: TransportCapabilities(rawValue: info.caps),
            options: try options(info, path: path, rebuild: rebuild))
        guard info.caps & (1 << 3) == 0 else {
            throw ModuleRefusal(
                path, "carries bytes instead of frames (MH_CAP_STREAM), which this daemon cannot do",
                advice: "ask its vendor for a module that frames")
        }
        return LoadedModule(
            path: path, descriptor: descriptor, abi: "\(info.abi_major).\(info.abi_minor_built)",
            url: info.url == nil ? nil : try text("url", info.url), ops: try ops(info.ops, path: path, rebuild: rebuild)
        )
    }

    /// As many of the functions as the module has, the others null.
    private static func ops(
        _ pointer: UnsafePointer<mh_transport_ops>?, path: String, rebuild: String
    ) throws(ModuleRefusal) -> mh_transport_ops {
        guard let pointer, Int(pointer.pointee.struct_size) >= opsSize else {
            let size = pointer.map { Int($0.pointee.struct_size) } ?? 0
            throw ModuleRefusal(
                path, "its function table has \(size) bytes where ABI \(MH_ABI_MAJOR).0 has \(opsSize)", advice: rebuild
            )
        }
        var ops = mh_transport_ops()
        withUnsafeMutableBytes(of: &ops) { own in
            let theirs = UnsafeRawBufferPointer(start: pointer, count: Int(pointer.pointee.struct_size))
            own.copyMemory(from: UnsafeRawBufferPointer(rebasing: theirs.prefix(own.count)))
        }
        let needed: [(String, Bool)] = [
            ("create", ops.create != nil), ("start", ops.start != nil), ("connect", ops.connect != nil),
            ("send", ops.send != nil), ("disconnect", ops.disconnect != nil), ("stop", ops.stop != nil),
            ("destroy", ops.destroy != nil),
        ]
        if let missing = needed.first(where: { !$0.1 }) {
            throw ModuleRefusal(path, "lacks the function \(missing.0)", advice: rebuild)
        }
        return ops
    }

    private static func options(
        _ info: mh_transport_info, path: String, rebuild: String
    ) throws(ModuleRefusal) -> [OptionSpec] {
        guard info.option_count <= optionLimit, info.option_count == 0 || info.options != nil else {
            throw ModuleRefusal(path, "its option table is not usable", advice: rebuild)
        }
        var specs: [OptionSpec] = []
        for index in 0..<info.option_count {
            let wrong = ModuleRefusal(path, "option \(index) of its table is not usable", advice: rebuild)
            guard let pointer = info.options[index], Int(pointer.pointee.struct_size) >= optionSize else { throw wrong }
            let option = pointer.pointee
            guard let name = option.name.flatMap(string), ModuleName.isValidOption(name),
                let help = option.help.flatMap(string), !specs.contains(where: { $0.name == name })
            else { throw wrong }
            let kind: OptionSpec.Kind
            switch option.type {
            case MH_OPT_STRING: kind = .string
            case MH_OPT_INT: kind = .int
            case MH_OPT_BOOL: kind = .bool
            case MH_OPT_DURATION: kind = .duration
            default: throw wrong
            }
            let spec = OptionSpec(
                name, kind, default: option.default_text.flatMap(string), help: help.singleLine,
                secret: option.secret != 0)
            guard spec.hasUsableDefault else { throw wrong }
            specs.append(spec)
        }
        return specs
    }

    /// A C string of at most 1,023 bytes.
    private static func string(_ text: UnsafePointer<CChar>) -> String? {
        let length = strnlen(text, 1_024)
        guard length < 1_024 else { return nil }
        return String(decoding: UnsafeRawBufferPointer(start: text, count: length), as: UTF8.self)
    }
}
