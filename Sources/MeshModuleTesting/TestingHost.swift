// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import Glibc
internal import MeshLoop
internal import MeshTransportAPI

/// The host's half of the ABI, for a module under test: each callback writes down what is said and judges it.
///
/// File-scope functions, because a closure from an isolated context traps on a module's thread.
enum TestingHost {
    /// A filled `mh_host_api`. Never freed, like the record.
    static func makeAPI(_ record: InstanceRecord, loop: EventLoop) -> UnsafePointer<mh_host_api> {
        let api = UnsafeMutablePointer<mh_host_api>.allocate(capacity: 1)
        api.initialize(to: mh_host_api())
        api.pointee.struct_size = UInt32(MemoryLayout<mh_host_api>.size)
        api.pointee.abi_minor = MH_ABI_MINOR
        api.pointee.ctx = OpaquePointer(Unmanaged.passRetained(record).toOpaque())
        // As bytes: whether Swift sees `uv_loop_s` as opaque depends on who imports libuv's header.
        withUnsafeMutableBytes(of: &api.pointee.loop) {
            $0.storeBytes(of: loop.unsafeUVLoop, as: UnsafeMutableRawPointer.self)
        }
        api.pointee.log = testLog
        api.pointee.now_ns = testNow
        api.pointee.rx_frame = testReceive
        api.pointee.link_up = testLinkUp
        api.pointee.link_down = testLinkDown
        api.pointee.writable = testWritable
        api.pointee.tx_done = testSendDone
        api.pointee.found = testFound
        api.pointee.metric = testMetric
        api.pointee.stopped = testStopped
        api.pointee.secret = testSecret
        api.pointee.link_event = testLinkEvent
        api.pointee.managed = testManaged
        api.pointee.scan_failed = testScanFailed
        return UnsafePointer(api)
    }
}

private func record(_ context: OpaquePointer?) -> InstanceRecord? {
    // Retained for ever when it was handed out.
    context.map { Unmanaged<InstanceRecord>.fromOpaque(UnsafeRawPointer($0)).takeUnretainedValue() }
}

private func testLog(_ context: OpaquePointer?, _ level: Int32, _ message: mh_str) {
    guard let record = record(context) else { return }
    record.hear("log") { state in
        if !(MH_LOG_ERROR...MH_LOG_DEBUG).contains(level) { state.breach(.form, "log has the level \(level)") }
        _ = record.check(message, "a log record", &state)
    }
}

private func testNow(_: OpaquePointer?) -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

private func testReceive(_ context: OpaquePointer?, _ link: mh_link, _ frame: mh_bytes, _: UInt64) -> mh_status {
    guard let record = record(context) else { return MH_EINVAL }
    return record.hear("rx_frame") { state in
        let state_ = state.links[link]?.state
        guard state_ == .up else {
            let why =
                switch state_ {
                case nil: "which the host has not given"
                case .connecting: "before its link_up"
                case .up, .over: "after its link_down"
                }
            state.breach(.frames, "rx_frame for link \(link), \(why)")
            return MH_ECLOSED
        }
        guard let start = frame.ptr, (1...Int(MH_MAX_FRAME)).contains(frame.len) else {
            state.breach(.frames, "rx_frame of \(frame.len) bytes")
            return MH_EINVAL
        }
        if state.links[link]?.isFull == true {
            if record.canResume { state.breach(.room, "rx_frame between MH_AGAIN and rx_ready") }
            return MH_AGAIN
        }
        if let refusals = state.links[link]?.refusals, refusals > 0 {
            state.links[link]?.refusals -= 1
            state.links[link]?.refused += 1
            state.links[link]?.isFull = true
            return MH_AGAIN
        }
        state.links[link]?.frames.append(Array(UnsafeBufferPointer(start: start, count: frame.len)))
        return MH_OK
    }
}

private func testLinkUp(_ context: OpaquePointer?, _ link: mh_link, _ maximum: UInt32, _ peer: mh_str) {
    guard let record = record(context) else { return }
    record.hear("link_up") { state in
        let peer = record.check(peer, "the peer of link_up", &state)
        if peer.isEmpty { state.breach(.form, "link_up names no peer") }
        if !(1...MH_MAX_FRAME).contains(maximum) {
            state.breach(.form, "link_up has a longest frame of \(maximum) bytes")
        }
        guard state.speaks(of: link, "link_up") else { return }
        if state.links[link]?.state == .up { state.breach(.links, "a second link_up for link \(link)") }
        state.links[link]?.state = .up
        state.links[link]?.maximum = Int(min(max(maximum, 1), MH_MAX_FRAME))
    }
}

private func testLinkDown(_ context: OpaquePointer?, _ link: mh_link, _ status: mh_status, _ detail: mh_str) {
    guard let record = record(context) else { return }
    record.hear("link_down") { state in
        let detail = record.check(detail, "the detail of link_down", &state)
        if status >= 0 { state.breach(.form, "link_down has the status \(status), which is no error") }
        if state.links[link]?.state == .over, state.links[link]?.end != nil {
            return state.breach(.links, "a second link_down for link \(link)")
        }
        guard state.speaks(of: link, "link_down") else { return }
        state.links[link]?.state = .over
        state.links[link]?.end = (status, detail)
        // "Sends still unanswered end with it."
        state.links[link]?.pending = []
    }
}

private func testWritable(_ context: OpaquePointer?, _ link: mh_link) {
    record(context)?.hear("writable") { state in
        guard state.speaks(of: link, "writable") else { return }
        state.links[link]?.writables += 1
    }
}

private func testSendDone(_ context: OpaquePointer?, _ cookie: UInt64, _ status: mh_status) {
    record(context)?.hear("tx_done") { state in
        guard let send = state.sends[cookie] else {
            return state.breach(.sends, "tx_done for send \(cookie), which was not accepted")
        }
        if send.status != nil { return state.breach(.sends, "a second tx_done for send \(cookie)") }
        state.sends[cookie]?.status = status
        guard state.speaks(of: send.link, "tx_done") else { return }
        let first = state.links[send.link]?.pending.first
        if let first, first != cookie {
            state.breach(.sends, "tx_done for send \(cookie) before that for send \(first)")
        }
        state.links[send.link]?.pending.removeAll { $0 == cookie }
        if status > 0 { state.breach(.form, "tx_done has the status \(status)") }
    }
}

private func testFound(
    _ context: OpaquePointer?, _ address: mh_str, _ name: mh_str, _: Int32, _ advertisement: mh_bytes
) {
    guard let record = record(context) else { return }
    record.hear("found") { state in
        if record.check(address, "the address of found", &state).isEmpty {
            state.breach(.form, "found has no address")
        }
        // The name comes from the air and may hold anything.
        if advertisement.ptr == nil, advertisement.len > 0 {
            state.breach(.form, "the advertisement of found has no pointer")
        }
        state.found += 1
    }
}

private func testMetric(_ context: OpaquePointer?, _ name: mh_str, _ kind: Int32, _: Double) {
    guard let record = record(context) else { return }
    record.hear("metric") { state in
        let name = record.check(name, "the name of a metric", &state)
        if !isOptionName(name) { state.breach(.form, "a metric has the name \"\(name)\"") }
        if kind != MH_METRIC_COUNTER, kind != MH_METRIC_GAUGE {
            state.breach(.form, "metric \(name) has the kind \(kind)")
        }
    }
}

private func testStopped(_ context: OpaquePointer?) {
    record(context)?.hear("stopped") { state in
        switch state.life {
        case .created: state.breach(.stopped, "stopped came without stop")
        case .stopping: state.life = .stopped
        case .stopped: state.breach(.stopped, "stopped came twice")
        case .destroyed: break
        }
        for (id, link) in state.links.sorted(by: { $0.key < $1.key }) where link.state != .over {
            state.breach(.stopped, "stopped came before the link_down of link \(id)")
        }
        for (id, answer) in state.requests.sorted(by: { $0.key < $1.key }) where answer == nil {
            state.breach(.requests, "stopped came before the managed of request \(id)")
        }
    }
}

private func testSecret(
    _: OpaquePointer?, _: mh_str, _: UnsafeMutablePointer<CChar>?, _: Int, _: UnsafeMutablePointer<Int>?
) -> mh_status {
    MH_ENOSUP
}

private func testLinkEvent(_ context: OpaquePointer?, _ link: mh_link, _ kind: Int32, _ value: UInt64) {
    record(context)?.hear("link_event") { state in
        // An adapter is also told of after the end.
        if kind == MH_EVENT_ADAPTER, state.links[link] != nil {
            if value > 1 { state.breach(.form, "MH_EVENT_ADAPTER has the value \(value)") }
            return
        }
        guard state.speaks(of: link, "link_event \(kind)"), kind == MH_EVENT_PHASE else { return }
        if value > UInt64(MH_PHASE_DISCONNECTING) { state.breach(.form, "MH_EVENT_PHASE has the value \(value)") }
        state.links[link]?.phases.append(value)
    }
}

private func testManaged(_ context: OpaquePointer?, _ request: UInt64, _ status: mh_status, _ result: mh_str) {
    guard let record = record(context) else { return }
    record.hear("managed") { state in
        let text = record.check(result, "the result of managed", &state)
        let document = try? JSONValue(parsing: Data(text.utf8))
        if document?.objectValue == nil { state.breach(.form, "the result of managed is no JSON object") }
        switch state.requests[request] {
        case nil: state.breach(.requests, "managed for request \(request), which was not accepted")
        case .some(.some): state.breach(.requests, "a second managed for request \(request)")
        case .some(nil): state.requests[request] = .some((status, document))
        }
    }
}

private func testScanFailed(_ context: OpaquePointer?, _ status: mh_status, _ detail: mh_str) {
    guard let record = record(context) else { return }
    record.hear("scan_failed") { state in
        let detail = record.check(detail, "the detail of scan_failed", &state)
        if status >= 0 { state.breach(.form, "scan_failed has the status \(status), which is no error") }
        state.searchFailed = (status, detail)
    }
}

/// `^[a-z][a-z0-9_]{0,62}$`
func isOptionName(_ text: String) -> Bool {
    guard let first = text.utf8.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first), text.utf8.count <= 63
    else { return false }
    return text.utf8.allSatisfy {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
            || $0 == UInt8(ascii: "_")
    }
}
