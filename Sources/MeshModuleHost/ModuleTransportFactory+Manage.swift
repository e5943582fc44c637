// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import MeshLoop
public import MeshTransportAPI

/// What goes through the module's `manage`. A module that does not know a verb answers `notSupported`.
extension ModuleTransportFactory: TransportPairing, TransportExamining, TransportForgetting, TransportDescribing {
    public func pair(_ settings: TransportSettings) async throws -> PairingReport {
        let result = try await manage(MH_VERB_PAIR, settings.json, within: limits.pairDeadline)
        guard let report = PairingReport(result) else {
            throw MeshError(.moduleFailed, "module \(descriptor.name) does not say what it has paired with")
        }
        return report
    }

    public func unpair(_ settings: TransportSettings) async throws -> Bool {
        try await manage(MH_VERB_UNPAIR, settings.json, within: limits.manageDeadline)["was_bonded"] == true
    }

    public func describe(_ adapter: String) async throws -> JSONValue {
        try await manage(MH_VERB_DESCRIBE, ["adapter": .string(adapter)], within: limits.manageDeadline)
    }

    /// Empty for a module that cannot examine; its failure is a finding.
    public func examine(_ devices: [TransportSettings]) async -> [Finding] {
        do throws(MeshError) {
            let params: JSONValue = ["devices": .array(devices.map(\.json))]
            let result = try await manage(MH_VERB_EXAMINE, params, within: limits.manageDeadline)
            return (result["findings"]?.arrayValue ?? []).compactMap { Finding($0)?.singleLine }
        } catch {
            guard error.code != .notSupported else { return [] }
            return [
                Finding(
                    .problem, descriptor.name, "it could not be examined: \(error.message)",
                    advice: "look at the log of meshhost, with daemon.log_level = \"debug\"")
            ]
        }
    }

    /// Nothing for a module that does not run, or that keeps nothing.
    public func forget(_ device: String) async {
        await LoopActor(loop).run { [instances, limits] _ in
            await instances.forget(device, within: limits.manageDeadline)
        }
    }

    private func manage(
        _ verb: String, _ params: JSONValue, within deadline: Duration
    ) async throws(MeshError) -> JSONValue {
        try await LoopActor(loop).run { [instances] _ throws(MeshError) in
            try await instances.manage(verb, params, within: deadline)
        }
    }
}

extension TransportSettings {
    /// The device as `scan` and the verbs of `manage` take it.
    var json: JSONValue { ["device": .string(device), "options": .object(written)] }
}

extension Finding {
    /// Without control characters: what a module says goes to a terminal.
    fileprivate var singleLine: Finding {
        Finding(severity, subject.singleLine, message.singleLine, advice: advice?.singleLine)
    }
}
