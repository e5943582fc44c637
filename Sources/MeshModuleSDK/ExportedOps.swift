// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshLoop
internal import MeshTransportAPI

/// The functions of every exported module. File-scope, without state: what they need is in the instance, or beside the
/// description that the module's entry function returns.
func makeExportedOps() -> mh_transport_ops {
    var ops = mh_transport_ops()
    ops.struct_size = UInt32(MemoryLayout<mh_transport_ops>.size)
    ops.validate = exportedValidate
    ops.create = exportedCreate
    ops.start = exportedStart
    ops.scan = exportedScan
    ops.connect = exportedConnect
    ops.send = exportedSend
    ops.disconnect = exportedDisconnect
    ops.diagnostics = exportedDiagnostics
    ops.stop = exportedStop
    ops.destroy = exportedDestroy
    ops.rx_ready = exportedReceiveReady
    ops.send_without_response = exportedSendWithoutResponse
    ops.manage = exportedManage
    ops.manage_cancel = exportedManageCancel
    ops.identity = exportedIdentity
    return ops
}

private func instance(_ handle: OpaquePointer) -> ExportedInstance {
    // Retained from create to destroy.
    Unmanaged<ExportedInstance>.fromOpaque(UnsafeRawPointer(handle)).takeUnretainedValue()
}

/// Ops come on the loop's thread (rule T1), which is where the instance lives.
private func onInstance<Result: Sendable>(
    _ handle: OpaquePointer?, _ otherwise: Result, _ body: @Sendable (isolated ExportedInstance) -> Result
) -> Result {
    guard let handle else { return otherwise }
    return instance(handle).assumeIsolated { body($0) }
}

private func exportedValidate(_ options: mh_str, _ sink: mh_sink?, _ context: UnsafeMutableRawPointer?) -> mh_status {
    guard let sink else { return MH_EINVAL }
    guard case .object(let written)? = try? JSONValue(parsing: Data(options)) else { return MH_EINVAL }
    let issues = ExportedModule.ofThisImage.issues(written)
    for issue in issues {
        var object: [String: JSONValue] = [
            "ptr": .string(issue.option.isEmpty ? "" : "/\(issue.option)"), "msg": .string(issue.message),
        ]
        if let hint = issue.hint { object["hint"] = .string(hint) }
        JSONValue.object(object).serialized().withABIBytes { sink(context, $0) }
    }
    return issues.isEmpty ? MH_OK : MH_EINVAL
}

private func exportedIdentity(_ options: mh_str, _ sink: mh_sink?, _ context: UnsafeMutableRawPointer?) -> mh_status {
    guard let sink, case .object(let written)? = try? JSONValue(parsing: Data(options)) else { return MH_EINVAL }
    if let identity = ExportedModule.ofThisImage.identity(written) {
        Data(identity.utf8).withABIBytes { sink(context, $0) }
    }
    return MH_OK
}

private func exportedCreate(
    _ api: UnsafePointer<mh_host_api>?, _: mh_str, _ out: UnsafeMutablePointer<OpaquePointer?>?
) -> mh_status {
    guard let api, let out, Int(api.pointee.struct_size) >= HostHandle.neededSize else { return MH_EINVAL }
    let host = HostHandle(api)
    let loop = EventLoop(wrapping: host.loop)
    let instance = ExportedInstance(
        loop: loop, host: host, factory: ExportedModule.ofThisImage.makeFactory(loop, host.log))
    out.pointee = OpaquePointer(Unmanaged.passRetained(instance).toOpaque())
    return MH_OK
}

private func exportedStart(_: OpaquePointer?) -> mh_status { MH_OK }

private func exportedScan(_ handle: OpaquePointer?, _ isOn: Int32, _ filter: mh_str) -> mh_status {
    let filter = Data(filter)
    return onInstance(handle, MH_EINVAL) { $0.scan(isOn != 0, filter) }
}

private func exportedConnect(
    _ handle: OpaquePointer?, _ link: mh_link, _ device: mh_str, _ options: mh_str
) -> mh_status {
    let device = String(decoding: Data(device), as: UTF8.self)
    let options = Data(options)
    return onInstance(handle, MH_EINVAL) { $0.connect(link, device: device, options: options) }
}

private func exportedSend(
    _ handle: OpaquePointer?, _ link: mh_link, _ frame: mh_bytes, _ cookie: UInt64
) -> mh_status {
    let frame = Data(frame)
    return onInstance(handle, MH_EINVAL) { $0.send(link, frame, cookie: cookie, withoutResponse: false) }
}

private func exportedSendWithoutResponse(
    _ handle: OpaquePointer?, _ link: mh_link, _ frame: mh_bytes, _ cookie: UInt64
) -> mh_status {
    let frame = Data(frame)
    return onInstance(handle, MH_EINVAL) { $0.send(link, frame, cookie: cookie, withoutResponse: true) }
}

private func exportedDisconnect(_ handle: OpaquePointer?, _ link: mh_link) -> mh_status {
    onInstance(handle, MH_EINVAL) { $0.disconnect(link) }
}

private func exportedReceiveReady(_ handle: OpaquePointer?, _ link: mh_link) -> mh_status {
    onInstance(handle, MH_EINVAL) { $0.receiveReady(link) }
}

private func exportedDiagnostics(
    _ handle: OpaquePointer?, _ sink: mh_sink?, _ context: UnsafeMutableRawPointer?
) -> mh_status {
    guard let sink else { return MH_EINVAL }
    onInstance(handle, JSONValue.object([:])) { $0.diagnostics() }.serialized().withABIBytes { sink(context, $0) }
    return MH_OK
}

private func exportedManage(
    _ handle: OpaquePointer?, _ request: UInt64, _ verb: mh_str, _ params: mh_str
) -> mh_status {
    let verb = String(decoding: Data(verb), as: UTF8.self)
    let params = Data(params)
    return onInstance(handle, MH_EINVAL) { $0.manage(request, verb, params) }
}

private func exportedManageCancel(_ handle: OpaquePointer?, _ request: UInt64) -> mh_status {
    onInstance(handle, MH_EINVAL) { $0.cancelManaged(request) }
}

private func exportedStop(_ handle: OpaquePointer?) -> mh_status {
    onInstance(handle, MH_EINVAL) { $0.stop() }
}

private func exportedDestroy(_ handle: OpaquePointer?) {
    guard let handle else { return }
    instance(handle).destroy()
    Unmanaged<ExportedInstance>.fromOpaque(UnsafeRawPointer(handle)).release()
}
