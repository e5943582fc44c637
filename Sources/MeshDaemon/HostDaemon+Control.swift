// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshConfig
internal import MeshLoop
internal import MeshModuleHost
internal import MeshRuntime
internal import MeshSharing
internal import MeshTransportAPI

/// What the control socket can ask. Every answer names its schema.
extension HostDaemon: ControlHandler {
    func answer(_ method: String, _ params: JSONValue) async throws(MeshError) -> JSONValue {
        guard let coordinator = running?.coordinator else {
            throw MeshError(.serviceUnavailable, "the daemon is starting or stopping")
        }
        switch method {
        case "version":
            return Version.json
        case "status":
            return await ownStatus(coordinator)
        case "modules":
            let statuses = catalog.statuses(searchPath: config.daemon.modulePath)
            return ["schema": "meshhost.modules/1", "modules": .array(statuses.map(\.json))]
        case "reset":
            let names = try catalog.reset(try ControlParameters(params).text("module"))
            await connectDevices(of: names, coordinator)
            return ["schema": "meshhost.reset/1", "modules": .array(names.map { .string($0) })]
        case "devices":
            return ["schema": "meshhost.devices/1", "devices": .array(await devices(coordinator))]
        case "device":
            let params = try ControlParameters(params)
            guard let name = try params.text("name") else {
                throw MeshError(.invalidArgument, "the method \"device\" needs a \"name\"")
            }
            if let device = config.devices.first(where: { $0.name == name }), let reason = device.disabledReason {
                guard try params.text("verb") ?? "status" == "status" else {
                    throw MeshError(.moduleRefused, "device \"\(name)\" is disabled: \(reason)")
                }
                return ["schema": "meshhost.device/1", "device": await json(disabled: device)]
            }
            guard config.devices.contains(where: { $0.name == name }) else { throw unknown(name) }
            try await perform(params, on: name, coordinator)
            let status = try await coordinator.status(of: name)
            var device = await json(status).objectValue ?? [:]
            // What the transport and its module tell of their inside; only here, since a module is asked for it.
            device["diagnostics"] = try await coordinator.diagnostics(of: name) ?? .null
            return ["schema": "meshhost.device/1", "device": .object(device)]
        case "clients":
            return await clients()
        case "examine":
            let modules = try ControlParameters(params).texts("modules")
            return DoctorFinding.document("meshhost.examine/1", await surroundings.examine(modules))
        case "describe":
            let params = try ControlParameters(params)
            guard let module = try params.text("module"), let adapter = try params.text("adapter") else {
                throw MeshError(.invalidArgument, "the method \"describe\" needs a \"module\" and an \"adapter\"")
            }
            return try await surroundings.describe(adapter, of: module)
        case "pair":
            return try await pair(params, coordinator)
        case "unpair":
            return try await unpair(params, coordinator)
        case "reload":
            let outcome = await reload()
            return ["schema": "meshhost.reload/1", "reload": outcome.report]
        default:
            throw MeshError(.notSupported, "unknown method \"\(method)\"")
        }
    }

    /// Tries devices at once that wait for these modules.
    private func connectDevices(of modules: [String], _ coordinator: ReconnectionCoordinator) async {
        for device in config.devices where modules.contains(device.module) && takenOn.contains(device.name) {
            guard let status = try? await coordinator.status(of: device.name), status.link.intent == .connect else {
                continue
            }
            try? await coordinator.perform(.connect, device.name)
        }
    }

    func subscribe(_ params: JSONValue) async throws(MeshError) -> EventSubscription {
        let params = try ControlParameters(params)
        let types = try params.texts("types") ?? []
        try EventFamilies.check(types)
        let device = try params.text("device")
        if let device, !config.devices.contains(where: { $0.name == device }) { throw unknown(device) }
        let since = try params.number("since", 0...Int64.max).map { UInt64(clamping: $0) }
        return bus.subscribe(
            EventFilter(types: types, devices: device.map { [$0] }), capacity: 1_024, overflow: .dropOldest,
            since: since)
    }

    private func unknown(_ device: String) -> MeshError {
        let near = NearestName.of(device, among: config.devices.map(\.name)).map { "did you mean \"\($0)\"?" }
        return MeshError(
            .deviceUnknown, "no device is called \"\(device)\"; \(near ?? "`meshhost devices` shows all there are")")
    }

    /// Ten years, the longest that `--for` takes.
    private static let longestRelease: Int64 = 315_360_000_000

    private func perform(
        _ params: ControlParameters, on device: String, _ coordinator: ReconnectionCoordinator
    ) async throws(MeshError) {
        switch try params.text("verb") {
        case nil, "status": break
        case "connect": try await coordinator.perform(.connect, device)
        case "disconnect": try await coordinator.perform(.disconnect, device)
        case "reconnect": try await coordinator.perform(.reconnect, device)
        case "release":
            let time = try params.number("for_ms", 0...Self.longestRelease).map { Duration.milliseconds($0) }
            try await coordinator.perform(.release(for: time), device)
        case let verb?:
            throw MeshError(.invalidArgument, "unknown verb \"\(verb)\"")
        }
    }

    private func devices(_ coordinator: ReconnectionCoordinator) async -> [JSONValue] {
        var list: [JSONValue] = []
        for status in await coordinator.statuses { list.append(await json(status)) }
        for device in config.devices where device.disabledReason != nil { list.append(await json(disabled: device)) }
        return list
    }

    /// A device whose module is not there: listed, never connected.
    private func json(disabled device: DeviceConfig) async -> JSONValue {
        [
            "name": .string(device.name), "module": .string(device.module),
            "state": .string(DeviceState.disconnected.rawValue), "phase": .string(LinkPhase.idle.rawValue),
            "intent": .string(device.autoconnect ? "connect" : "disconnect"), "attempts": 0,
            "consecutive_failures": 0, "breaker": "closed", "waiting": .null, "peer": .null, "last_error": .null,
            "up_ms": .null, "disabled": device.disabledReason.map { .string($0) } ?? .null, "session": .null,
            "shares": await shares(of: device.name),
        ]
    }

    private func shares(of device: String) async -> JSONValue {
        var shares: [JSONValue] = []
        for share in await sessions[device]?.shareSnapshots ?? [] {
            shares.append([
                "name": .string(share.name), "type": .string(share.type), "listen": .string(share.listen),
                "clients": .int(Int64(share.clients)), "tls": .bool(share.hasTLS),
                "tokens": .array(share.tokens.map { .string($0) }),
            ])
        }
        return .array(shares)
    }

    private func json(_ status: DeviceStatus) async -> JSONValue {
        let link = status.link
        let device = config.devices.first { $0.name == link.device }
        var waiting = JSONValue.null
        if let reason = link.waiting {
            waiting = [
                "why": .string(reason.slug), "text": .string(reason.description),
                "for_ms": link.remaining.map { .int($0.milliseconds) } ?? .null,
            ]
        }
        return [
            "name": .string(link.device), "module": .string(device?.module ?? ""),
            "state": .string(link.state.rawValue), "phase": .string(status.transportPhase.rawValue),
            "intent": .string(link.intent.name), "attempts": .int(Int64(link.attempts)),
            "consecutive_failures": .int(Int64(link.consecutiveFailures)),
            "breaker": .string(link.breaker.rawValue), "waiting": waiting,
            "peer": status.info.map { .string($0.peer) } ?? .null,
            "last_error": link.lastError?.json ?? .null,
            "up_ms": link.readySince.map { .int((loop.now - $0).milliseconds) } ?? .null,
            "disabled": .null, "session": await sessions[link.device]?.counters.json ?? .null,
            "shares": await shares(of: link.device),
        ]
    }

    private func clients() async -> JSONValue {
        var list: [ClientSnapshot] = []
        var cut: [String: Int64] = [:]
        for reason in LeaveReason.allCases where reason.isCut { cut[reason.rawValue] = 0 }
        for session in sessions.values {
            list += await session.clientSnapshots
            for (reason, count) in await session.counters.left where reason.isCut {
                cut[reason.rawValue, default: 0] += Int64(clamping: count)
            }
        }
        return [
            "schema": "meshhost.clients/1",
            "clients": .array(list.sorted { $0.id < $1.id }.map(\.json)),
            "cut": .object(cut.mapValues { .int($0) }),
        ]
    }
}

extension LeaveReason {
    /// Whether the host ended the connection because of what the client did.
    fileprivate var isCut: Bool {
        switch self {
        case .stuck, .overflow, .refused, .denied: true
        case .closed, .failed, .shareClosed: false
        }
    }
}

extension ClientSnapshot {
    fileprivate var json: JSONValue {
        [
            "id": .int(Int64(clamping: id)), "device": .string(device), "share": .string(share), "peer": .string(peer),
            "role": .string(role.rawValue), "token": token.map { .string($0) } ?? .null,
            "tls": tls.map { .string($0) } ?? .null, "app": app.map { .string($0) } ?? .null,
            "slot": slot.map { .int(Int64($0)) } ?? .null, "version": .int(Int64(version)),
            "unread": unread.map { .bool($0) } ?? .null, "frames_in": .int(Int64(clamping: framesIn)),
            "frames_out": .int(Int64(clamping: framesOut)), "queue_frames": .int(Int64(queueFrames)),
            "queue_bytes": .int(Int64(queueBytes)), "dropped": .int(Int64(clamping: dropped)),
        ]
    }
}

extension RadioSession.Counters {
    fileprivate var json: JSONValue {
        let counts: [(String, UInt64)] = [
            ("frames_received", framesReceived), ("commands_sent", commandsSent), ("answered_here", answeredHere),
            ("commands_while_away", commandsWhileAway), ("commands_refused", commandsRefused),
            ("airtime_refused", airtimeRefused), ("command_timeouts", commandTimeouts),
            ("mesh_requests_refused", meshRequestsRefused), ("mesh_requests_unanswered", meshRequestsUnanswered),
            ("unasked_replies", unaskedReplies), ("late_replies", lateReplies), ("orphan_answers", orphanAnswers),
            ("messages_stored", messagesStored), ("messages_repeated", messagesRepeated),
            ("messages_lost", messagesLost),
            ("messages_delivered", messagesDelivered), ("messages_redelivered", messagesRedelivered),
            ("contact_passes", contactPasses),
        ]
        return .object(Dictionary(uniqueKeysWithValues: counts.map { ($0, .int(Int64(clamping: $1))) }))
    }
}
