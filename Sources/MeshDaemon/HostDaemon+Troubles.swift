// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshConfig
internal import MeshJournal
internal import MeshLoop
internal import MeshRuntime
internal import MeshSharing
internal import MeshTransportAPI

/// What the daemon notices of itself while nobody looks: told once in the log and on the bus when it begins, and once when
/// it is over, and shown by `status` and `doctor` in between.
extension HostDaemon {
    /// Watches what can fail in a daemon that runs.
    func watchTroubles(of running: Running) async {
        running.reserve.onChange = { [unowned self] change in self.assumeIsolated { $0.descriptorsChanged(change) } }
        await running.journal.observe { [unowned self] event in
            self.assumeIsolated { $0.journalChanged(event) }
        }
        let failures = bus.subscribe(EventFilter(types: ["link.down"]), capacity: 1)
        linkFailures = failures
        linkFailureTask = Task(executorPreference: loop.taskExecutor) {
            for await event in failures { await self.linkFailed(event) }
        }
    }

    /// No more is told.
    func forgetTroubles() async {
        linkFailures?.cancel()
        await linkFailureTask?.value
        running?.reserve.onChange = nil
    }

    // MARK: Sources

    /// Where there are no descriptors, links fail for want of one as connections do.
    private func linkFailed(_ event: HostEvent) {
        guard event.data["code"]?.stringValue == MeshError.Code.resourceExhausted.slug else { return }
        running?.reserve.check()
    }

    private func journalChanged(_ event: JournalEvent) {
        let path = running?.journal.path ?? ""
        switch event {
        case .failing(let error):
            began(.journal, path, error)
        case .writable:
            for session in sessions.values { session.assumeIsolated { $0.journalIsWritable() } }
        case .working:
            ended(.journal, path)
        case .replaced(let keptAs, let error):
            let message = "\(error.message); it was kept as \(keptAs), and a new one has begun without its messages"
            let loss = MeshError(error.code, message, cause: error)
            troubles.happened(.journal, path, loss, now: loop.now)
            bus.publish(
                "daemon.loss",
                .json([
                    "about": .string(TroubleBook.Topic.journal.rawValue), "subject": .string(path),
                    "code": .string(loss.code.slug), "message": .string(loss.message), "kept_as": .string(keptAs),
                ]))
        }
    }

    private func descriptorsChanged(_ change: DescriptorReserve.Change) {
        let subject = "process \(ProcessDescriptors.processID)"
        switch change {
        case .exhausted(let error):
            let limit = ProcessDescriptors.limit.map { " (it may have \($0))" } ?? ""
            began(
                .descriptors, subject,
                MeshError(
                    .resourceExhausted,
                    "no descriptor is left\(limit): cannot \(error.operation); end connections, or raise LimitNOFILE",
                    cause: error))
        case .relieved(let turnedAway):
            ended(.descriptors, subject, ["turned_away": .int(Int64(clamping: turnedAway))])
        }
    }

    /// The file of a socket has gone, or is back.
    func socketChanged(_ path: String, _ error: LoopError?) {
        guard let error else { return ended(.socket, path) }
        began(
            .socket, path,
            MeshError(
                .serviceUnavailable,
                "nobody can connect to \(path): \(error.detail); it is made again when that can be",
                cause: error))
    }

    // MARK: Telling

    private func began(_ topic: TroubleBook.Topic, _ subject: String, _ error: MeshError) {
        guard troubles.began(topic, subject, error, now: loop.now), let trouble = troubles.all.last else { return }
        log(
            .error, "something is wrong with the daemon",
            [("about", topic.rawValue), ("subject", subject), ("reason", error.message)])
        bus.publish("daemon.trouble", .json(.object(trouble.facts)))
    }

    private func ended(_ topic: TroubleBook.Topic, _ subject: String, _ more: [String: JSONValue] = [:]) {
        guard let trouble = troubles.ended(topic, subject) else { return }
        let time = loop.now - trouble.since
        log(
            .notice, "the daemon is well again",
            [("about", topic.rawValue), ("subject", subject), ("after", "\(time.milliseconds) ms")]
                + more.map { ($0.key, $0.value.text()) })
        let facts: [String: JSONValue] = [
            "about": .string(topic.rawValue), "subject": .string(subject), "after_ms": .int(time.milliseconds),
        ]
        bus.publish("daemon.recovered", .json(.object(facts.merging(more) { $1 })))
    }

    // MARK: Status

    /// The answer to `status`.
    func ownStatus(_ coordinator: ReconnectionCoordinator) async -> JSONValue {
        let links = await coordinator.statuses
        var clients = 0
        for session in sessions.values { clients += await session.clientCount }
        return [
            "schema": "meshhost.status/1", "version": .string(Version.text),
            "up_ms": .int((loop.now - startedAt).milliseconds),
            "devices": .int(Int64(config.devices.count)),
            "devices_ready": .int(Int64(links.count { $0.link.phase == .ready })), "clients": .int(Int64(clients)),
            "descriptors": [
                "open": ProcessDescriptors.open.map { .int(Int64($0)) } ?? .null,
                "limit": ProcessDescriptors.limit.map { .int(Int64(clamping: $0)) } ?? .null,
                "turned_away": .int(Int64(clamping: running?.reserve.turnedAway ?? 0)),
            ],
            "troubles": .array(troubles.all.map { $0.json(now: loop.now) }),
        ]
    }
}
