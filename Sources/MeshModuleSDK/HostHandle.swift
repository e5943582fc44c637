// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshTransportAPI
internal import Synchronization

/// The host as a module sees it: its callbacks, closed for good before `destroy` returns.
///
/// Sendable: the table is immutable and valid until `destroy` returns, its functions may be called from any thread, and
/// what may be late (log records, events of a transport's own threads) goes through `isOpen`.
final class HostHandle: @unchecked Sendable {
    /// What a host of ABI 1.0 fills: all that links need.
    static let neededSize = MemoryLayout<mh_host_api>.offset(of: \.managed)!

    private let api: UnsafePointer<mh_host_api>
    private let isOpen = Mutex(true)

    init(_ api: UnsafePointer<mh_host_api>) {
        self.api = api
    }

    /// The host's `uv_loop_t *`.
    var loop: UnsafeMutableRawPointer {
        // As bytes: whether Swift sees `uv_loop_s` as opaque depends on who imports libuv's header.
        withUnsafeBytes(of: api.pointee.loop) { $0.loadUnaligned(as: UnsafeMutableRawPointer.self) }
    }

    /// The last callback has been made.
    func close() {
        isOpen.withLock { $0 = false }
    }

    // MARK: From any thread, at any time

    /// A sink whose records go to the host's log; fields follow the message as `key=value`.
    var log: LogSink {
        LogSink(threshold: .debug) { [self] level, message, fields in
            let text = fields.reduce(message) { "\($0) \($1.0)=\($1.1)" }
            whileOpen { text.withABIString { self.api.pointee.log(self.api.pointee.ctx, level.rawValue, $0) } }
        }
    }

    func linkEvent(_ link: mh_link, _ kind: Int32, _ value: UInt64) {
        whileOpen { api.pointee.link_event(api.pointee.ctx, link, kind, value) }
    }

    private func whileOpen(_ call: () -> Void) {
        isOpen.withLock { if $0 { call() } }
    }

    // MARK: From the instance, before `destroy`

    func receive(_ link: mh_link, _ frame: Data) -> mh_status {
        frame.withABIBytes { api.pointee.rx_frame(api.pointee.ctx, link, $0, 0) }
    }

    func linkUp(_ link: mh_link, _ info: LinkInfo?) {
        let maximum = info.map { UInt32(clamping: $0.maximumFrameLength) } ?? MH_MAX_FRAME
        (info?.peer ?? "").withABIString { api.pointee.link_up(api.pointee.ctx, link, maximum, $0) }
    }

    func linkDown(_ link: mh_link, _ status: mh_status, detail: String) {
        detail.withABIString { api.pointee.link_down(api.pointee.ctx, link, status, $0) }
    }

    func writable(_ link: mh_link) {
        api.pointee.writable(api.pointee.ctx, link)
    }

    func sendDone(_ cookie: UInt64, _ status: mh_status) {
        api.pointee.tx_done(api.pointee.ctx, cookie, status)
    }

    func found(_ result: ScanResult) {
        result.address.withABIString { address in
            result.name.withABIString { name in
                Data(result.advertisement).withABIBytes { advertisement in
                    api.pointee.found(
                        api.pointee.ctx, address, name, result.rssi.map { Int32(clamping: $0) } ?? Int32.min,
                        advertisement)
                }
            }
        }
    }

    /// Only a host that has `managed` asks anything.
    func managed(_ request: UInt64, _ status: mh_status, _ result: JSONValue) {
        guard Int(api.pointee.struct_size) > Self.neededSize else { return }
        result.serialized().withABIBytes { bytes in
            let text = mh_str(ptr: UnsafeRawPointer(bytes.ptr)?.assumingMemoryBound(to: CChar.self), len: bytes.len)
            api.pointee.managed(api.pointee.ctx, request, status, text)
        }
    }

    /// A host that has no `scan_failed` finds it in its log.
    func scanFailed(_ error: MeshError) {
        guard Int(api.pointee.struct_size) > MemoryLayout<mh_host_api>.offset(of: \.scan_failed)! else {
            return log(.warning, "scanning failed", [("error", error.message)])
        }
        error.message.withABIString { api.pointee.scan_failed(api.pointee.ctx, error.code.abiStatus, $0) }
    }

    func stopped() {
        api.pointee.stopped(api.pointee.ctx)
    }
}

extension Data {
    /// Lends the bytes for one call.
    func withABIBytes<Result>(_ body: (mh_bytes) -> Result) -> Result {
        withUnsafeBytes { bytes in
            body(mh_bytes(ptr: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), len: bytes.count))
        }
    }

    /// Copies a host's bytes.
    init(_ bytes: mh_bytes) {
        if let start = bytes.ptr { self.init(bytes: start, count: bytes.len) } else { self.init() }
    }

    /// Copies a host's text.
    init(_ text: mh_str) {
        if let start = text.ptr { self.init(bytes: start, count: text.len) } else { self.init() }
    }
}

extension String {
    /// Lends the text for one call.
    func withABIString<Result>(_ body: (mh_str) -> Result) -> Result {
        var copy = self
        return copy.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { body(mh_str(ptr: $0.baseAddress, len: $0.count)) }
        }
    }
}
