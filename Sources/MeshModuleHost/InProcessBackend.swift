// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshLoop
internal import MeshTransportAPI

/// One instance of a module whose code is in this process: calls its functions and holds it to its promise to return at
/// once. Used on the loop's thread only.
final class InProcessBackend: ModuleBackend {
    private static let slowOp: Duration = .milliseconds(50)
    private static let wedgedOp: Duration = .seconds(2)

    private let module: LoadedModule
    private let handle: OpaquePointer
    private let inbox: InstanceInbox
    private let loop: EventLoop
    private let log: LogSink
    private var slowOps = 0

    /// Creates and starts it.
    init(
        _ module: LoadedModule, _ options: [String: JSONValue], inbox: InstanceInbox, loop: EventLoop, log: LogSink
    ) throws(ModuleStartFailure) {
        let name = module.descriptor.name
        let api = HostCallbacks.makeAPI(inbox, loop: loop)
        var created: OpaquePointer?
        let status = JSONValue.object(options).serialized().withABIString { module.ops.create(api, $0, &created) }
        guard status == MH_OK, let created else {
            throw ModuleStartFailure(
                status: status == MH_OK ? MH_EINTERNAL : status, detail: "module \(name) could not be created")
        }
        self.module = module
        self.inbox = inbox
        self.loop = loop
        self.log = log
        handle = created
        let started = timed("start") { module.ops.start(handle) }
        guard started == MH_OK else {
            // Closed before: what it says while it is destroyed is late.
            inbox.close()
            module.ops.destroy(handle)
            throw ModuleStartFailure(status: started, detail: "module \(name) could not be started")
        }
    }

    var facts: [String: JSONValue] { ["slow_ops": .int(Int64(slowOps))] }

    func connect(_ link: mh_link, device: String, options: Data) -> mh_status {
        options.withABIString { options in
            device.withABIString { device in
                timed("connect") { module.ops.connect(handle, link, device, options) }
            }
        }
    }

    func disconnect(_ link: mh_link) -> mh_status {
        timed("disconnect") { module.ops.disconnect(handle, link) }
    }

    func send(
        _ link: mh_link, _ frame: Data, cookie: UInt64, withoutResponse: Bool
    ) -> (accepted: mh_status, done: mh_status?) {
        let send = withoutResponse ? module.ops.send_without_response ?? module.ops.send : module.ops.send
        return inbox.sending(cookie) {
            frame.withABIBytes { bytes in timed("send") { send!(handle, link, bytes, cookie) } }
        }
    }

    func framesTaken(_ link: mh_link, frames: Int, bytes: Int) {
        guard inbox.release(link, frames: frames, bytes: bytes), let ready = module.ops.rx_ready else { return }
        _ = timed("rx_ready") { ready(handle, link) }
    }

    func forget(_ link: mh_link) {}

    func scan(isOn: Bool, filter: Data) -> mh_status {
        guard let scan = module.ops.scan else { return MH_ENOSUP }
        return filter.withABIString { filter in timed("scan") { scan(handle, isOn ? 1 : 0, filter) } }
    }

    func manage(_ request: UInt64, verb: String, params: Data) -> mh_status {
        guard let manage = module.ops.manage else { return MH_ENOSUP }
        return params.withABIString { params in
            verb.withABIString { verb in timed("manage") { manage(handle, request, verb, params) } }
        }
    }

    func cancelManage(_ request: UInt64) -> mh_status {
        guard let cancel = module.ops.manage_cancel else { return MH_ENOSUP }
        return timed("manage_cancel") { cancel(handle, request) }
    }

    func diagnostics() -> Data? {
        guard let diagnostics = module.ops.diagnostics else { return nil }
        let buffer = SinkBuffer()
        _ = timed("diagnostics") { diagnostics(handle, sinkFunction, Unmanaged.passUnretained(buffer).toOpaque()) }
        return buffer.list.reduce(Data(), +)
    }

    func stop() -> mh_status { timed("stop") { module.ops.stop(handle) } }

    /// Its threads may still run: nothing can end them, and the instance cannot be destroyed.
    func kill() -> Bool { false }

    func destroy() { timed("destroy") { module.ops.destroy(handle) } }

    /// Runs an op and measures it.
    private func timed<Result>(_ op: StaticString, _ body: () -> Result) -> Result {
        let start = loop.now
        let result = body()
        let elapsed = loop.now - start
        if elapsed > Self.slowOp {
            slowOps += 1
            if elapsed > Self.wedgedOp {
                log(
                    .warning, "module blocks the host",
                    [("module", module.descriptor.name), ("op", "\(op)"), ("time", elapsed.optionText)])
            }
        }
        return result
    }
}

/// What an instance's `create` or `start` answered.
struct ModuleStartFailure: Error {
    var status: mh_status
    /// For people.
    var detail: String
}
