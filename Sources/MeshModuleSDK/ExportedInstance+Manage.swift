// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshLoop
internal import MeshTransportAPI

/// The verbs of `manage`, for factories that know them.
extension ExportedInstance {
    func manage(_ request: UInt64, _ verb: String, _ params: Data) -> mh_status {
        guard stopping == nil, requests[request] == nil else { return MH_ECLOSED }
        guard let params = try? JSONValue(parsing: params), params.objectValue != nil else { return MH_EINVAL }
        switch verb {
        case MH_VERB_PAIR:
            guard let pairing = factory as? any TransportPairing else { return MH_ENOSUP }
            answer(request) { try await pairing.pair(self.device(params)).json }
        case MH_VERB_UNPAIR:
            guard let pairing = factory as? any TransportPairing else { return MH_ENOSUP }
            answer(request) { ["was_bonded": .bool(try await pairing.unpair(self.device(params)))] }
        case MH_VERB_EXAMINE:
            guard let examining = factory as? any TransportExamining else { return MH_ENOSUP }
            answer(request) { ["findings": .array(await self.findings(examining, params).map(\.json))] }
        case MH_VERB_FORGET:
            guard let name = params["device"]?.stringValue else { return MH_EINVAL }
            answer(request) {
                await self.forget(name)
                return [:]
            }
        case MH_VERB_DESCRIBE:
            guard let describing = factory as? any TransportDescribing else { return MH_ENOSUP }
            guard let adapter = params["adapter"]?.stringValue else { return MH_EINVAL }
            answer(request) { try await describing.describe(adapter) }
        default: return MH_ENOSUP
        }
        return MH_OK
    }

    func cancelManaged(_ request: UInt64) -> mh_status {
        guard let task = requests[request] else { return MH_ECLOSED }
        task.cancel()
        return MH_OK
    }

    private func answer(_ request: UInt64, _ body: @escaping @Sendable () async throws -> JSONValue) {
        requests[request] = Task(executorPreference: loop.taskExecutor) {
            do {
                let result = try await body()
                await self.ended(request, MH_OK, result)
            } catch {
                let error = MeshError(wrapping: error)
                await self.ended(request, error.code.abiStatus, ["detail": .string(error.message)])
            }
        }
    }

    private func ended(_ request: UInt64, _ status: mh_status, _ result: JSONValue) {
        requests[request] = nil
        host.managed(request, status, result)
    }

    func device(_ params: JSONValue) throws(MeshError) -> TransportSettings {
        let name = params["device"]?.stringValue ?? ""
        return try settings(
            name, params["options"]?.objectValue ?? [:],
            TransportEnvironment(log: host.log.adding([("device", name)])) { _ in })
    }

    /// A device whose options are wrong is a finding of its own.
    private func findings(_ examining: any TransportExamining, _ params: JSONValue) async -> [Finding] {
        var devices: [TransportSettings] = []
        var findings: [Finding] = []
        for params in params["devices"]?.arrayValue ?? [] {
            do throws(MeshError) {
                devices.append(try device(params))
            } catch {
                findings.append(
                    Finding(
                        .problem, params["device"]?.stringValue ?? "", error.message, advice: "correct its options"))
            }
        }
        return await examining.examine(devices) + findings
    }
}
