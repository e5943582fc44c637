// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import Glibc
internal import MeshLoop
public import MeshTransportAPI

/// A module in the process: its description, checked, and its functions. Never unloaded.
///
/// Sendable: everything the pointers lead to is static and immutable (rule O3 of the ABI).
public final class LoadedModule: HostedModule, @unchecked Sendable {
    /// The file it came from.
    public let path: String
    /// Name, version, vendor, license, capabilities and the option table.
    public let descriptor: TransportDescriptor
    /// The ABI it was built with, such as `1.0`.
    public let abi: String
    /// Where to read about it, if it says so.
    public let url: String?

    /// Its functions; those it lacks are null.
    let ops: mh_transport_ops
    let capabilities: UInt64

    init(path: String, descriptor: TransportDescriptor, abi: String, url: String?, ops: mh_transport_ops) {
        self.path = path
        self.descriptor = descriptor
        self.abi = abi
        self.url = url
        self.ops = ops
        capabilities = descriptor.capabilities.rawValue
    }

    var canScan: Bool { capabilities & MH_CAP_SCAN != 0 && ops.scan != nil }
    var canSendWithoutResponse: Bool {
        capabilities & MH_CAP_SEND_WITHOUT_RESPONSE != 0 && ops.send_without_response != nil
    }
    var canResume: Bool { ops.rx_ready != nil }
    var status: ModuleStatus { ModuleStatus(self) }

    func settled() {}

    func start(
        _ options: [String: JSONValue], inbox: InstanceInbox, loop: EventLoop, log: LogSink, settings: ModuleSettings
    ) throws(MeshError) -> any ModuleBackend {
        do throws(ModuleStartFailure) {
            return try InProcessBackend(self, options, inbox: inbox, loop: loop, log: log)
        } catch {
            throw MeshError(status: error.status, detail: error.detail, module: descriptor.name)
        }
    }

    /// What the module itself thinks of one device's options. Pure; on the loop's thread, or without a loop.
    func validate(_ options: [String: JSONValue]) -> [OptionIssue] {
        guard let validate = ops.validate else { return [] }
        let chunks = SinkBuffer()
        let status = JSONValue.object(options).serialized().withABIString {
            validate($0, sinkFunction, Unmanaged.passUnretained(chunks).toOpaque())
        }
        var issues: [OptionIssue] = []
        for chunk in chunks.list {
            guard let value = try? JSONValue(parsing: chunk), let issue = OptionIssue(ofModule: value) else { continue }
            issues.append(issue)
        }
        if issues.isEmpty, status != MH_OK {
            issues.append(
                OptionIssue(
                    option: "", message: MeshError(status: status, module: descriptor.name).message))
        }
        return issues
    }

    /// Which device these options, which have no issues, mean. Pure; on the loop's thread, or without a loop.
    func identity(_ options: [String: JSONValue]) -> String? {
        guard let identity = ops.identity else { return nil }
        let chunks = SinkBuffer()
        let status = JSONValue.object(options).serialized().withABIString {
            identity($0, sinkFunction, Unmanaged.passUnretained(chunks).toOpaque())
        }
        let text = String(decoding: chunks.list.joined(), as: UTF8.self).singleLine
        return status == MH_OK && !text.isEmpty ? text : nil
    }
}

/// What an op puts into its sink. Used inside one call of one op only.
final class SinkBuffer {
    /// The chunks as they came.
    private(set) var list: [Data] = []
    private var count = 0
    /// A module that talks without end is cut off here.
    private static let limit = 1 << 20

    func append(_ chunk: mh_bytes) {
        guard let start = chunk.ptr, chunk.len > 0, chunk.len <= Self.limit - count else { return }
        count += chunk.len
        list.append(Data(bytes: start, count: chunk.len))
    }
}

/// The `mh_sink` of every op: a file-scope function, because a closure written in an isolated context traps when a
/// module calls it from a thread of its own.
func sinkFunction(_ context: UnsafeMutableRawPointer?, _ chunk: mh_bytes) {
    guard let context else { return }
    Unmanaged<SinkBuffer>.fromOpaque(context).takeUnretainedValue().append(chunk)
}

extension Data {
    /// Lends the bytes as text for one call.
    func withABIString<Result>(_ body: (mh_str) -> Result) -> Result {
        withUnsafeBytes { bytes in
            body(mh_str(ptr: bytes.baseAddress?.assumingMemoryBound(to: CChar.self), len: bytes.count))
        }
    }

    /// Lends the bytes for one call.
    func withABIBytes<Result>(_ body: (mh_bytes) -> Result) -> Result {
        withUnsafeBytes { bytes in
            body(mh_bytes(ptr: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), len: bytes.count))
        }
    }
}

extension Data {
    /// Copies a module's text; empty where it is longer than 1 MiB.
    init(_ text: mh_str) {
        guard let start = text.ptr, text.len <= 1 << 20 else {
            self.init()
            return
        }
        self.init(bytes: start, count: text.len)
    }
}

extension String {
    /// Copies a module's text; at most 4 KiB, and broken UTF-8 is repaired.
    init(_ text: mh_str) {
        guard let start = text.ptr else {
            self = ""
            return
        }
        self = String(
            decoding: UnsafeRawBufferPointer(start: UnsafeRawPointer(start), count: Swift.min(text.len, 4_096)),
            as: UTF8.self)
    }

    /// Lends the text for one call.
    func withABIString<Result>(_ body: (mh_str) -> Result) -> Result {
        var copy = self
        return copy.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { body(mh_str(ptr: $0.baseAddress, len: $0.count)) }
        }
    }
}
