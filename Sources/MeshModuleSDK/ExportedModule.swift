// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import CTransportABI
internal import Glibc
public import MeshLoop
public import MeshTransportAPI

/// A ``TransportFactory`` as a module: everything the C ABI wants, made once. The whole of a module's entry file:
///
/// ```swift
/// private let exported = ExportedModule { loop, _ in TCPTransportFactory(loop: loop) }
///
/// @c @implementation
/// public func mh_transport_entry_v1() -> UnsafePointer<mh_transport_info>? { exported.info }
/// ```
///
/// One instance of the module carries the links of all devices, on the host's loop. Transports run there as in any other
/// program: their actors pin themselves to the loop they are given, and no handle of them may be left when a link has been
/// disconnected and the instance is stopped. A device keeps its transport from link to link while its options stay the same;
/// between links only `LinkEvent.adapter` is told. Each link's frames leave in the loop turn they arrive in; a consumer that falls behind stops the link's
/// stream from being read.
public final class ExportedModule: Sendable {
    /// The description with the module beside it, so that the ops, which get no context, find it without a global.
    private struct Storage {
        var info: mh_transport_info
        var module: UnsafeRawPointer
    }

    /// The description that the entry function returns. Allocated once, never freed. Immutable.
    public nonisolated(unsafe) let info: UnsafePointer<mh_transport_info>
    let makeFactory: @Sendable (EventLoop, LogSink) -> any TransportFactory
    private let validate: @Sendable (OptionValues) -> [OptionIssue]
    private let identity: @Sendable (OptionValues) -> String?
    private let options: [OptionSpec]

    /// A module whose description needs no loop. `validate` says what the option table cannot, as
    /// ``TransportFactory/validate(_:)`` does, and `identity` which device options mean.
    public init(
        _ descriptor: TransportDescriptor, validate: @escaping @Sendable (OptionValues) -> [OptionIssue] = { _ in [] },
        identity: @escaping @Sendable (OptionValues) -> String? = { _ in nil },
        makeFactory: @escaping @Sendable (EventLoop, LogSink) -> any TransportFactory
    ) {
        self.makeFactory = makeFactory
        self.validate = validate
        self.identity = identity
        options = descriptor.options
        let storage = UnsafeMutablePointer<Storage>.allocate(capacity: 1)
        info = UnsafeRawPointer(storage).assumingMemoryBound(to: mh_transport_info.self)
        var info = Self.describe(descriptor)
        let ops = UnsafeMutablePointer<mh_transport_ops>.allocate(capacity: 1)
        ops.initialize(to: makeExportedOps())
        info.ops = UnsafePointer(ops)
        // Never released: the module lives as long as the process.
        storage.initialize(to: Storage(info: info, module: UnsafeRawPointer(Unmanaged.passRetained(self).toOpaque())))
    }

    /// A module that is described by a factory. The factory is made on a loop that is closed, on which nothing can be done:
    /// it must not try, as factories do not.
    public convenience init(makeFactory: @escaping @Sendable (EventLoop, LogSink) -> any TransportFactory) {
        self.init(
            Self.ask(makeFactory) { $0.descriptor },
            validate: { values in Self.ask(makeFactory) { $0.validate(values) } },
            identity: { values in Self.ask(makeFactory) { $0.identity(values) } }, makeFactory: makeFactory)
    }

    private static func ask<Answer>(
        _ makeFactory: (EventLoop, LogSink) -> any TransportFactory, _ question: (any TransportFactory) -> Answer
    ) -> Answer {
        // Asked at any time, also when no descriptor is left to open one with.
        question(makeFactory(.closed(), .none))
    }

    /// The module that the entry function of this image describes.
    static var ofThisImage: ExportedModule {
        let storage = UnsafeRawPointer(mh_transport_entry_v1()!).assumingMemoryBound(to: Storage.self)
        return Unmanaged<ExportedModule>.fromOpaque(storage.pointee.module).takeUnretainedValue()
    }

    /// What is wrong with these options.
    func issues(_ written: [String: JSONValue]) -> [OptionIssue] {
        let (values, issues) = options.resolve(written)
        return issues.joined(by: validate(values))
    }

    /// Which device these options mean; nil also for options that are wrong.
    func identity(_ written: [String: JSONValue]) -> String? {
        let (values, issues) = options.resolve(written)
        return issues.isEmpty ? identity(values) : nil
    }

    private static func describe(_ descriptor: TransportDescriptor) -> mh_transport_info {
        let table = UnsafeMutablePointer<UnsafePointer<mh_option>?>.allocate(capacity: max(1, descriptor.options.count))
        for (index, spec) in descriptor.options.enumerated() {
            let option = UnsafeMutablePointer<mh_option>.allocate(capacity: 1)
            option.initialize(to: mh_option())
            option.pointee.struct_size = UInt32(MemoryLayout<mh_option>.size)
            option.pointee.type =
                switch spec.kind {
                case .string: MH_OPT_STRING
                case .int: MH_OPT_INT
                case .bool: MH_OPT_BOOL
                case .duration: MH_OPT_DURATION
                }
            option.pointee.name = UnsafePointer(strdup(spec.name))
            option.pointee.default_text = spec.defaultText.map { UnsafePointer(strdup($0)) }
            option.pointee.help = UnsafePointer(strdup(spec.help))
            option.pointee.secret = spec.isSecret ? 1 : 0
            (table + index).initialize(to: UnsafePointer(option))
        }
        var info = mh_transport_info()
        info.struct_size = UInt32(MemoryLayout<mh_transport_info>.size)
        info.abi_major = MH_ABI_MAJOR
        info.abi_minor_built = MH_ABI_MINOR
        info.abi_minor_needed = 0
        info.name = UnsafePointer(strdup(descriptor.name))
        info.version = UnsafePointer(strdup(descriptor.version))
        info.vendor = UnsafePointer(strdup(descriptor.vendor))
        info.license = UnsafePointer(strdup(descriptor.license))
        info.caps = descriptor.capabilities.rawValue | (1 << 1)
        info.options = UnsafePointer(table)
        info.option_count = descriptor.options.count
        return info
    }
}
