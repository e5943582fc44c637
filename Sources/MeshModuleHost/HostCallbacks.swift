// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import Glibc
internal import MeshLoop
internal import MeshTransportAPI

/// The host's half of the ABI. Every callback is a file-scope function: a closure written in an isolated context traps
/// when a module calls it from a thread of its own. Each does nothing but copy what it is told into the inbox.
enum HostCallbacks {
    /// A filled `mh_host_api` for an instance; like the inbox it is never freed, for modules that call late.
    static func makeAPI(_ inbox: InstanceInbox, loop: EventLoop) -> UnsafePointer<mh_host_api> {
        let api = UnsafeMutablePointer<mh_host_api>.allocate(capacity: 1)
        api.initialize(to: mh_host_api())
        api.pointee.struct_size = UInt32(MemoryLayout<mh_host_api>.size)
        api.pointee.abi_minor = MH_ABI_MINOR
        api.pointee.ctx = inbox.retainForever()
        // As bytes: whether Swift sees `uv_loop_s` as opaque depends on who imports libuv's header.
        withUnsafeMutableBytes(of: &api.pointee.loop) {
            $0.storeBytes(of: loop.unsafeUVLoop, as: UnsafeMutableRawPointer.self)
        }
        api.pointee.log = hostLog
        api.pointee.now_ns = hostNow
        api.pointee.rx_frame = hostReceive
        api.pointee.link_up = hostLinkUp
        api.pointee.link_down = hostLinkDown
        api.pointee.writable = hostWritable
        api.pointee.tx_done = hostSendDone
        api.pointee.found = hostFound
        api.pointee.metric = hostMetric
        api.pointee.stopped = hostStopped
        api.pointee.secret = hostSecret
        api.pointee.link_event = hostLinkEvent
        api.pointee.managed = hostManaged
        api.pointee.scan_failed = hostScanFailed
        return UnsafePointer(api)
    }
}

private func inbox(_ context: OpaquePointer?) -> InstanceInbox? {
    // The context was retained for ever when it was handed out.
    context.map { Unmanaged<InstanceInbox>.fromOpaque(UnsafeRawPointer($0)).takeUnretainedValue() }
}

private func hostLog(_ context: OpaquePointer?, _ level: Int32, _ message: mh_str) {
    inbox(context)?.log(LogLevel(abiValue: level), String(message).singleLine)
}

private func hostNow(_: OpaquePointer?) -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

private func hostReceive(_ context: OpaquePointer?, _ link: mh_link, _ frame: mh_bytes, _: UInt64) -> mh_status {
    inbox(context)?.receive(link, frame) ?? MH_EINVAL
}

private func hostLinkUp(_ context: OpaquePointer?, _ link: mh_link, _ maximum: UInt32, _ peer: mh_str) {
    let maximum = Int(min(max(maximum, 1), MH_MAX_FRAME))
    inbox(context)?.post(.linkUp(link, maximum: maximum, peer: String(peer).singleLine), for: link)
}

private func hostLinkDown(_ context: OpaquePointer?, _ link: mh_link, _ status: mh_status, _ detail: mh_str) {
    inbox(context)?.linkDown(link, status, detail: String(detail).singleLine)
}

private func hostWritable(_ context: OpaquePointer?, _ link: mh_link) {
    inbox(context)?.post(.writable(link), for: link)
}

private func hostSendDone(_ context: OpaquePointer?, _ cookie: UInt64, _ status: mh_status) {
    inbox(context)?.sendDone(cookie, status)
}

private func hostFound(
    _ context: OpaquePointer?, _ address: mh_str, _ name: mh_str, _ rssi: Int32, _ advertisement: mh_bytes
) {
    let bytes = UnsafeBufferPointer(start: advertisement.ptr, count: advertisement.ptr == nil ? 0 : advertisement.len)
    let result = ScanResult(
        address: String(address), name: String(name), rssi: rssi == Int32.min ? nil : Int(rssi),
        advertisement: Array(bytes.prefix(2_048)))
    inbox(context)?.post(.found(result), isDroppable: true)
}

private func hostMetric(_ context: OpaquePointer?, _ name: mh_str, _ kind: Int32, _ value: Double) {
    inbox(context)?.post(.metric(String(name), kind: kind, value), isDroppable: true)
}

private func hostStopped(_ context: OpaquePointer?) {
    inbox(context)?.post(.stopped)
}

private func hostSecret(
    _: OpaquePointer?, _: mh_str, _: UnsafeMutablePointer<CChar>?, _: Int, _: UnsafeMutablePointer<Int>?
) -> mh_status {
    // Secrets in options arrive resolved; there is no store to ask yet.
    MH_ENOSUP
}

private func hostLinkEvent(_ context: OpaquePointer?, _ link: mh_link, _ kind: Int32, _ value: UInt64) {
    if kind == MH_EVENT_ADAPTER {
        inbox(context)?.adapterChanged(link, value)
    } else {
        inbox(context)?.post(.linkEvent(link, kind: kind, value), for: link, isDroppable: true)
    }
}

private func hostManaged(_ context: OpaquePointer?, _ request: UInt64, _ status: mh_status, _ result: mh_str) {
    inbox(context)?.managed(request, status, Data(result))
}

private func hostScanFailed(_ context: OpaquePointer?, _ status: mh_status, _ detail: mh_str) {
    inbox(context)?.post(.scanFailed(status, detail: String(detail).singleLine))
}
