// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshLoop
internal import MeshTransportAPI

/// Where a rule is played: a module, a loop, and the patience of who waits. Used on the loop's thread only.
final class Stage {
    let module: ExaminedModule
    let loop: EventLoop
    /// The device's options as the user wrote them.
    let options: [String: JSONValue]
    /// The device gives back every frame.
    let hasEcho: Bool
    let patience: Duration
    /// Why no link comes up, as another trial has found.
    let obstacle: String?
    /// Told what is being done, before it is.
    private let doing: (String) -> Void
    private(set) var instances: [TestedInstance] = []
    private var records: [InstanceRecord] = []
    /// Numbers of links, sends and requests.
    private var last: UInt64 = 0
    /// How long each call of each function took.
    private(set) var durations: [String: [Duration]] = [:]

    init(
        _ module: ExaminedModule, _ loop: EventLoop, options: [String: JSONValue], hasEcho: Bool, patience: Duration,
        obstacle: String? = nil, doing: @escaping (String) -> Void
    ) {
        self.module = module
        self.loop = loop
        self.options = options
        self.hasEcho = hasEcho
        self.patience = patience
        self.obstacle = obstacle
        self.doing = doing
    }

    /// What is wrong with the options, or which are missing.
    var issues: [OptionIssue] { module.options.resolve(options).issues }

    var secrets: [String] {
        module.options.filter(\.isSecret).compactMap { options[$0.name]?.stringValue }
    }

    func number() -> UInt64 {
        last += 1
        return last
    }

    /// Calls one function of the module.
    func call<Result>(_ function: String, _ record: InstanceRecord? = nil, _ body: () -> Result) -> Result {
        doing(function)
        record?.update { $0.function = function }
        let start = loop.now
        let result = body()
        durations[function, default: []].append(loop.now - start)
        record?.update { $0.function = nil }
        return result
    }

    /// Lets the loop turn until `condition` holds. `what` is missing otherwise.
    func wait(for what: String, until condition: () -> Bool) throws {
        guard try turn(for: patience, until: condition) else {
            throw RuleEnd.overdue("\(what) has not come within \(patience.optionText)")
        }
    }

    /// Lets the loop turn for some time, whatever happens.
    func idle(for time: Duration) throws {
        _ = try turn(for: time) { false }
    }

    /// Whether `condition` held before the time was over.
    private func turn(for time: Duration, until condition: () -> Bool) throws -> Bool {
        if condition() { return true }
        var isOver = false
        let timer = LoopTimer(loop)
        timer.schedule(after: time) { [loop] in
            isOver = true
            loop.stop()
        }
        while !isOver {
            loop.run()
            if condition() { return true }
        }
        return false
    }

    /// Makes an instance, and starts it.
    func start() throws -> TestedInstance {
        let instance = try TestedInstance(self)
        instances.append(instance)
        records.append(instance.record)
        try instance.start()
        return instance
    }

    /// Instances that have ended need not be looked at any more.
    func forget(_ instance: TestedInstance) {
        instances.removeAll { $0 === instance }
    }

    /// What instances have said that no module may say, up to now.
    var breaches: [Breach] {
        var list: [Breach] = []
        for breach in records.flatMap({ record in record.read { $0.breaches } }) where !list.contains(breach) {
            list.append(breach)
        }
        return list
    }

    func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
        if !condition { throw RuleEnd.broken(message()) }
    }
}

extension mh_status {
    /// Its name in the header.
    var named: String {
        let names: [mh_status: String] = [
            MH_OK: "MH_OK", MH_AGAIN: "MH_AGAIN", MH_ECLOSED: "MH_ECLOSED", MH_EINVAL: "MH_EINVAL",
            MH_ENOSUP: "MH_ENOSUP", MH_EIO: "MH_EIO", MH_EAUTH: "MH_EAUTH", MH_ENOMEM: "MH_ENOMEM",
            MH_ETIMEDOUT: "MH_ETIMEDOUT", MH_EREFUSED: "MH_EREFUSED", MH_EHOST: "MH_EHOST", MH_EPEER: "MH_EPEER",
            MH_EADAPTER: "MH_EADAPTER", MH_ECONTENDED: "MH_ECONTENDED", MH_EPERM: "MH_EPERM",
            MH_ETOOLONG: "MH_ETOOLONG", MH_ECANCELED: "MH_ECANCELED", MH_ENOTCONN: "MH_ENOTCONN",
            MH_EDEADLINE: "MH_EDEADLINE", MH_EFULL: "MH_EFULL", MH_EUNAVAIL: "MH_EUNAVAIL",
            MH_ENOTDEVICE: "MH_ENOTDEVICE", MH_ECONFIG: "MH_ECONFIG", MH_EINTERNAL: "MH_EINTERNAL",
        ]
        return names[self] ?? "\(self)"
    }
}
