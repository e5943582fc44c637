// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshLoop
internal import MeshTransportAPI

/// One instance of the module under test: calls its functions as a host may. Used on the loop's thread only.
final class TestedInstance {
    private let stage: Stage
    private let handle: OpaquePointer
    let record: InstanceRecord
    private var isStarted = false
    private var isStopped = false
    private var isDestroyed = false

    private var ops: mh_transport_ops { stage.module.ops }

    /// Creates it.
    init(_ stage: Stage) throws {
        self.stage = stage
        let module = stage.module
        let loop = stage.loop
        record = InstanceRecord(secrets: stage.secrets, canResume: module.ops.rx_ready != nil) { loop.stop() }
        let isShared = module.has(MH_CAP_MULTILINK)
        if !isShared, !stage.issues.isEmpty, !module.has(MH_CAP_SCAN) { throw stage.missingOptions }
        // Without options there is an instance for scanning.
        let config = JSONValue.object(isShared || !stage.issues.isEmpty ? [:] : stage.options).text()
        let api = TestingHost.makeAPI(record, loop: loop)
        var created: OpaquePointer?
        let status = stage.call("create", record) { withABI(config) { module.ops.create(api, $0, &created) } }
        guard status == MH_OK else { throw RuleEnd.broken("create returned \(status.named)") }
        guard let created else { throw RuleEnd.broken("create returned MH_OK and no instance") }
        handle = created
    }

    func start() throws {
        let status = call("start") { ops.start(handle) }
        guard status == MH_OK else {
            markDestroyed()
            call("destroy") { ops.destroy(handle) }
            throw RuleEnd.broken("start returned \(status.named)")
        }
        isStarted = true
    }

    @discardableResult
    private func call<Result>(_ function: String, _ body: () -> Result) -> Result {
        stage.call(function, record, body)
    }

    // MARK: Links

    /// Calls connect. Nil: it returned an error.
    func connect() throws -> mh_link {
        guard stage.issues.isEmpty else { throw stage.missingOptions }
        let link = stage.number()
        record.update { $0.links[link] = InstanceRecord.Link() }
        let options = JSONValue.object(stage.options).text()
        let status = call("connect") {
            withABI(options) { options in withABI("test") { ops.connect(handle, link, $0, options) } }
        }
        guard status != MH_OK else { return link }
        record.update { state in
            if state.links[link]?.state != .connecting || state.links[link]?.end != nil {
                state.breach(.links, "connect returned \(status.named) and spoke of link \(link) all the same")
            }
            state.links[link]?.state = .over
        }
        guard status < 0 else { throw RuleEnd.broken("connect returned \(status.named)") }
        throw RuleEnd.unreachable("connect returned \(status.named)")
    }

    /// How often a device is tried that does not answer. One that has just lost its host may need a while.
    static let attempts = 3

    /// A link that is up.
    func open() throws -> mh_link {
        // Said once, with what to do.
        if stage.obstacle != nil { throw RuleEnd.skipped("no link comes up") }
        var left = Self.attempts
        while true {
            let link = try connect()
            try stage.wait(for: "link_up or link_down after connect") { record.link(link).state != .connecting }
            let facts = record.link(link)
            if facts.state == .up { return link }
            left -= 1
            if left > 0 { continue }
            let end = facts.end.map { "\($0.status.named)\($0.detail.isEmpty ? "" : ", \($0.detail)")" } ?? ""
            throw RuleEnd.unreachable(end)
        }
    }

    /// Calls disconnect.
    func disconnect(_ link: mh_link) -> mh_status { call("disconnect") { ops.disconnect(handle, link) } }

    /// Ends a link, and waits for its end.
    func close(_ link: mh_link) throws {
        let status = disconnect(link)
        try stage.expect(
            status == MH_OK || record.link(link).state == .over, "disconnect of an open link returned \(status.named)")
        try stage.wait(for: "link_down after disconnect") { record.link(link).state == .over }
    }

    /// Calls send. The cookie of an accepted send, or why it was not.
    func send(_ frame: [UInt8], on link: mh_link) -> (cookie: UInt64, status: mh_status) {
        let cookie = stage.number()
        record.update { state in
            // Before the call: tx_done may come from inside it.
            state.sends[cookie] = InstanceRecord.Answer(link: link)
            state.links[link]?.pending.append(cookie)
        }
        let status = call("send") { withABI(frame) { ops.send(handle, link, $0, cookie) } }
        if status != MH_OK {
            record.update { state in
                if state.sends[cookie]?.status != nil {
                    state.breach(.sends, "send \(cookie) returned \(status.named), and a tx_done came")
                }
                state.sends[cookie] = nil
                state.links[link]?.pending.removeAll { $0 == cookie }
            }
        }
        return (cookie, status)
    }

    /// How an accepted send ended; nil: it has not, and its link is up.
    func outcome(of cookie: UInt64) -> mh_status? { record.read { $0.sends[cookie]?.status } }

    /// Sends a frame that there must be room for, and waits for its tx_done.
    func carry(_ frame: [UInt8], on link: mh_link) throws -> mh_status {
        while true {
            let writables = record.link(link).writables
            let (cookie, status) = send(frame, on: link)
            switch status {
            case MH_OK:
                try stage.wait(for: "tx_done for a frame of \(frame.count) bytes") {
                    outcome(of: cookie) != nil || record.link(link).state == .over
                }
                return outcome(of: cookie) ?? record.link(link).end?.status ?? MH_ECLOSED
            case MH_AGAIN:
                try stage.wait(for: "writable after MH_AGAIN") {
                    record.link(link).writables > writables || record.link(link).state == .over
                }
                if record.link(link).state == .over { return record.link(link).end?.status ?? MH_ECLOSED }
            default: return status
            }
        }
    }

    func ready(_ link: mh_link) -> mh_status {
        record.update { $0.links[link]?.isFull = false }
        return call("rx_ready") { ops.rx_ready?(handle, link) ?? MH_ENOSUP }
    }

    func probe(_ link: mh_link) -> mh_status { call("probe") { ops.probe?(handle, link) ?? MH_ENOSUP } }

    // MARK: Beside links

    func scan(_ isOn: Bool) -> mh_status {
        let filter = isOn ? #"{"devices":[]}"# : "{}"
        return call("scan") { withABI(filter) { ops.scan?(handle, isOn ? 1 : 0, $0) ?? MH_ENOSUP } }
    }

    /// Nil: the module has no such function.
    func diagnostics() -> (status: mh_status, text: String)? {
        guard let diagnostics = ops.diagnostics else { return nil }
        let (status, chunks) = call("diagnostics") { SinkChunks.collect { diagnostics(handle, $0, $1) } }
        record.update { record.checkSecrets(chunks.text, "diagnostics", &$0) }
        return (status, chunks.text)
    }

    /// Begins a request. Its number, if it was accepted.
    func manage(_ verb: String) -> (request: UInt64, status: mh_status) {
        let request = stage.number()
        record.update { $0.requests[request] = .some(nil) }
        let status = call("manage") {
            withABI(verb) { verb in withABI("{}") { ops.manage?(handle, request, verb, $0) ?? MH_ENOSUP } }
        }
        if status != MH_OK {
            record.update { state in
                if case .some(.some) = state.requests[request] {
                    state.breach(.requests, "manage returned \(status.named), and managed came")
                }
                state.requests[request] = nil
            }
        }
        return (request, status)
    }

    func answer(to request: UInt64) -> (status: mh_status, result: JSONValue?)? {
        record.read { $0.requests[request] ?? nil }
    }

    // MARK: The end

    /// Calls stop.
    func stop() throws {
        isStopped = true
        record.update { if $0.life == .created { $0.life = .stopping } }
        let status = call("stop") { ops.stop(handle) }
        try stage.expect(status == MH_OK, "stop returned \(status.named)")
    }

    /// Waits for stopped, and destroys it.
    func destroy() throws {
        try stage.wait(for: "stopped after stop") { record.read { $0.life == .stopped } }
        markDestroyed()
        call("destroy") { ops.destroy(handle) }
    }

    /// Stops and destroys it.
    func end() throws {
        guard isStarted, !isDestroyed else { return }
        if !isStopped { try stop() }
        try destroy()
    }

    /// Nothing may be said during destroy, either.
    private func markDestroyed() {
        isDestroyed = true
        record.update { $0.life = .destroyed }
    }
}

extension Stage {
    /// Why there is no instance, or no link.
    var missingOptions: RuleEnd {
        let missing = module.options.filter { $0.defaultText == nil && options[$0.name] == nil }.map(\.name)
        let words = missing.isEmpty ? issues.map(\.message) : missing.map { "--option \($0)=…" }
        return .skipped("it needs a device's options: give \(words.joined(separator: " "))")
    }
}
