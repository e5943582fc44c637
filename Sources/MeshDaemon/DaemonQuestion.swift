// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// A command that a running daemon answers: asks, and shows the answer.
struct DaemonQuestion {
    var command: HostCommand
    var options: HostOptions

    /// Returns the exit status.
    func ask(_ client: inout ControlClient) throws(MeshError) -> ExitStatus {
        switch command {
        case .modules:
            Self.show(modules: try client.ask("modules")["modules"]?.arrayValue ?? [], options)
        case .modulesReset(let name):
            let answer = try client.ask("reset", name.map { ["module": .string($0)] } ?? .object([:]))
            if options.isQuiet { break }
            show(answer) {
                let names = (answer["modules"]?.arrayValue ?? []).map { Self.text($0) }
                return names.isEmpty
                    ? "no module runs in a process of its own\n" : "reset: \(names.joined(separator: ", "))\n"
            }
        case .status:
            return showStatus(try client.ask("status"))
        case .devices:
            let answer = try client.ask("devices")
            show(answer) { Self.table(devices: answer["devices"]?.arrayValue ?? []) }
        case .device(let name, let verb):
            let answer = try client.ask("device", Self.params(name, verb))
            if !options.isQuiet { show(answer) { Self.table(devices: [answer["device"] ?? .null]) } }
        case .clients:
            let answer = try client.ask("clients")
            show(answer) { Self.table(clients: answer["clients"]?.arrayValue ?? []) }
        case .listen(let listen):
            try self.listen(listen, &client)
        case .reload:
            return reloaded(try client.ask("reload"))
        case .run, .check, .configShow, .configSchema, .bridge, .decode, .decodeBluetooth, .decodeRecording, .encode,
            .version, .help, .completion, .moduleTest, .scan, .pair, .unpair, .doctor, .controllerInfo, .modulesVerify:
            break
        }
        return .ok
    }

    private func show(_ answer: JSONValue, table: () -> String) {
        options.isJSON ? Terminal.write(answer) : Terminal.write(table())
    }

    /// A config with errors changed nothing; the errors are those of the daemon's own look at it. Of one without, some may
    /// not have been possible.
    private func reloaded(_ answer: JSONValue) -> ExitStatus {
        let isAccepted = answer["reload"]?["ok"] == true
        let problems = answer["reload"]?["problems"]?.arrayValue ?? []
        if options.isJSON {
            Terminal.write(answer)
        } else if !problems.isEmpty {
            for problem in problems { Terminal.complain("meshhost: not applied: \(Self.text(problem))") }
        } else if isAccepted {
            let waiting = (answer["reload"]?["restart_required"]?.arrayValue ?? []).map { Self.text($0) }
            let rest = waiting.isEmpty ? "" : "; after a restart also: \(waiting.joined(separator: ", "))"
            if !options.isQuiet { Terminal.write("reloaded\(rest)\n") }
        } else {
            for error in answer["reload"]?["errors"]?.arrayValue ?? [] { Terminal.complain(Self.text(error)) }
        }
        guard isAccepted else { return .configuration }
        return problems.isEmpty ? .ok : .unavailable
    }

    private func listen(_ listen: HostCommand.ListenOptions, _ client: inout ControlClient) throws(MeshError) {
        var params: [String: JSONValue] = ["types": .array(listen.types.map { .string($0) })]
        if let device = listen.device { params["device"] = .string(device) }
        if let since = listen.since { params["since"] = .int(Int64(clamping: since)) }
        var left = listen.count ?? .max
        var isAccepted = false
        do throws(MeshError) {
            try client.stream("listen", .object(params)) { event in
                Terminal.write(event.text() + "\n")
                if event["type"] == "listen.ready" { isAccepted = true } else { left -= 1 }
                return left > 0
            }
        } catch {
            // The daemon has stopped: the stream is at its end.
            guard isAccepted, error.code == .serviceUnavailable else { throw error }
        }
    }

    private static func params(_ name: String, _ verb: HostCommand.DeviceVerb) -> JSONValue {
        switch verb {
        case .status: ["name": .string(name), "verb": "status"]
        case .connect: ["name": .string(name), "verb": "connect"]
        case .disconnect: ["name": .string(name), "verb": "disconnect"]
        case .reconnect: ["name": .string(name), "verb": "reconnect"]
        case .release(nil): ["name": .string(name), "verb": "release"]
        case .release(let time?):
            ["name": .string(name), "verb": "release", "for_ms": .int(time.milliseconds)]
        }
    }

    // MARK: Tables

    static func show(modules: [JSONValue], _ options: HostOptions) {
        if options.isJSON {
            return Terminal.write(["schema": "meshhost.modules/1", "modules": .array(modules)])
        }
        var table = TextTable(header: ["NAME", "STATE", "VERSION", "ABI", "RUNS", "PATH"])
        var reasons: [String] = []
        for module in modules {
            table.add([
                text(module["name"]), text(module["state"]), text(module["version"]), text(module["abi"]),
                place(of: module), text(module["path"]),
            ])
            if let crash = module["last_crash"]?.stringValue {
                let (crashes, restarts) = (module["crashes"]?.intValue ?? 0, module["restarts"]?.intValue ?? 0)
                reasons.append(
                    "\(text(module["name"])): crashes: \(crashes), restarts: \(restarts); the last one \(crash)\n")
            }
            if let reason = module["reason"]?.stringValue { reasons.append("\(text(module["name"])): \(reason)\n") }
        }
        Terminal.write(table.text + reasons.joined())
    }

    /// Where a module runs, with its processes.
    private static func place(of module: JSONValue) -> String {
        ([text(module["isolation"])] + (module["pids"]?.arrayValue ?? []).map { text($0) }).joined(separator: " ")
    }

    private static func table(devices: [JSONValue]) -> String {
        var table = TextTable(header: ["DEVICE", "STATE", "INTENT", "MODULE", "PEER", "SHARES", "NOTE"])
        for device in devices {
            let shares = (device["shares"]?.arrayValue ?? []).map { share in
                "\(text(share["listen"])) (\(share["clients"]?.intValue ?? 0))"
            }
            table.add([
                text(device["name"]), state(of: device), text(device["intent"]), text(device["module"]),
                text(device["peer"]), shares.joined(separator: " "), note(on: device),
            ])
        }
        return table.text
    }

    /// The state, with the transport's phase while one is being made.
    static func state(of device: JSONValue) -> String {
        let state = text(device["state"])
        guard state == DeviceState.connecting.rawValue, let phase = device["phase"]?.stringValue,
            phase != state, phase != LinkPhase.idle.rawValue
        else { return state }
        return "\(state): \(phase)"
    }

    /// Why there is no link, and what was wrong with the last one.
    static func note(on device: JSONValue) -> String {
        if let reason = device["disabled"]?.stringValue { return reason }
        let last = device["last_error"]?["message"]?.stringValue
        if let waiting = device["waiting"]?["text"]?.stringValue {
            guard device["waiting"]?["why"] == "adapter", let last else { return waiting }
            return "\(waiting): \(last)"
        }
        guard device["state"]?.stringValue != DeviceState.ready.rawValue, let last else { return "" }
        return "last: \(last)"
    }

    private static func table(clients: [JSONValue]) -> String {
        var table = TextTable(header: [
            "ID", "DEVICE", "SHARE", "PEER", "TOKEN", "ROLE", "IN", "OUT", "QUEUE", "DROPPED",
        ])
        for client in clients {
            table.add([
                text(client["id"]), text(client["device"]), text(client["share"]), text(client["peer"]),
                text(client["token"]), text(client["role"]), text(client["frames_in"]), text(client["frames_out"]),
                text(client["queue_frames"]), text(client["dropped"]),
            ])
        }
        return table.text
    }

    static func text(_ value: JSONValue?) -> String {
        switch value {
        case .string(let text)?: text
        case .int(let number)?: "\(number)"
        case .null?, nil: "-"
        case let value?: value.text()
        }
    }
}
