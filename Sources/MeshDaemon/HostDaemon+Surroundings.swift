// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshConfig
internal import MeshRuntime
internal import MeshTransportAPI

/// What the control socket can ask of modules. One owner of the adapter: links and what is asked do not disturb each other.
extension HostDaemon {
    var surroundings: Surroundings { Surroundings(catalog: catalog, config: config, loop: loop, log: log) }

    func scan(_ params: JSONValue) async throws(MeshError) -> AsyncStream<JSONValue> {
        guard running != nil, !isStopping else {
            throw MeshError(.serviceUnavailable, "the daemon is starting or stopping")
        }
        let params = try ControlParameters(params)
        let limits = ScanLimits.time.lowerBound.milliseconds...ScanLimits.time.upperBound.milliseconds
        let time = try params.number("for_ms", limits).map { Duration.milliseconds($0) } ?? .seconds(10)
        return try await surroundings.scan(try params.text("module"), for: time)
    }

    /// A device whose link is up is left as it is: it is paired, or needs no pairing. One that is being connected is
    /// paused, so that two do not pair with it at the same time.
    func pair(
        _ params: JSONValue, _ coordinator: ReconnectionCoordinator
    ) async throws(MeshError) -> JSONValue {
        let target = try await surroundings.target(try HostCommand.PairOptions(params, "pair"))
        var answer: [String: JSONValue] = [
            "schema": "meshhost.pair/1", "device": target.device.map { .string($0) } ?? .null, "connected": false,
        ]
        if let device = target.device, takenOn.contains(device) {
            let link = try await coordinator.status(of: device).link
            if link.phase == .ready || link.phase == .handshaking {
                answer["connected"] = true
                answer["report"] = .null
                return .object(answer)
            }
        }
        let report = try await paused(target, coordinator) { try await target.factory.pair(target.settings) }
        answer["report"] = report.shownFromAir.json
        return .object(answer)
    }

    /// Ends the device's link first: without its keys it is worth nothing. It is made anew afterwards if it is wanted.
    func unpair(
        _ params: JSONValue, _ coordinator: ReconnectionCoordinator
    ) async throws(MeshError) -> JSONValue {
        let target = try await surroundings.target(try HostCommand.PairOptions(params, "unpair"))
        let wasBonded = try await paused(target, coordinator) { try await target.factory.unpair(target.settings) }
        return [
            "schema": "meshhost.unpair/1", "device": target.device.map { .string($0) } ?? .null,
            "was_bonded": .bool(wasBonded),
        ]
    }

    private func paused<Outcome: Sendable>(
        _ target: Surroundings.Target, _ coordinator: ReconnectionCoordinator,
        _ body: () async throws -> Outcome
    ) async throws(MeshError) -> Outcome {
        var isPaused = false
        if let device = target.device, takenOn.contains(device) { isPaused = try await coordinator.pause(device) }
        let outcome: Result<Outcome, MeshError>
        do {
            outcome = .success(try await body())
        } catch {
            outcome = .failure(MeshError(wrapping: error))
        }
        if isPaused, let device = target.device { await coordinator.resume(device) }
        return try outcome.get()
    }
}

extension HostCommand.PairOptions {
    /// As they come over the control socket.
    init(_ params: JSONValue, _ method: String) throws(MeshError) {
        let params = try ControlParameters(params)
        guard let target = try params.text("target") else {
            throw MeshError(.invalidArgument, "the method \"\(method)\" needs a \"target\"")
        }
        self.init(
            target: target, module: try params.text("module"), adapter: try params.text("adapter"),
            pin: try params.text("pin"))
    }

    var json: JSONValue {
        [
            "target": .string(target), "module": module.map { .string($0) } ?? .null,
            "adapter": adapter.map { .string($0) } ?? .null, "pin": pin.map { .string($0) } ?? .null,
        ]
    }
}
