// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshLoop
internal import MeshTransportAPI

extension ModuleInstance {
    /// Asks the module for something that is neither a link nor a scan, and waits for its answer: until the deadline, and
    /// then until it has ended what it began. Throws `notSupported` where it does not know the verb.
    func manage(_ verb: String, _ params: JSONValue, within deadline: Duration) async throws(MeshError) -> JSONValue {
        // Not that it does not know the verb: whoever asked would take the module for a lesser one.
        if let failure { throw failure }
        let number = requests.nextNumber()
        let answers = requests.open(
            number, deadline: deadline,
            cancel: { [unowned self] in isRunning ? backend.cancelManage(number) : MH_ENOSUP },
            isOver: { [inbox] in inbox.closeRequest(number) })
        inbox.openRequest(number)
        let status = backend.manage(number, verb: verb, params: params.serialized())
        if status != MH_OK { requests.answered(number, status < 0 ? status : MH_EINTERNAL, .init()) }
        // In a task of its own: a stream ends at once for a task that is cancelled, and the module's end is to be awaited.
        let answer = Task(executorPreference: loop.taskExecutor) { await answers.first { _ in true } }
        let outcome = await withTaskCancellationHandler {
            await answer.value
        } onCancel: { [loop] in
            loop.perform { self.requests.end(number, because: MH_ECANCELED) }
        }
        return try result(of: verb, outcome ?? .init(status: MH_ECANCELED, result: .init()), deadline)
    }

    private func result(
        of verb: String, _ answer: ManagedRequests.Answer, _ deadline: Duration
    ) throws(MeshError) -> JSONValue {
        if answer.status == MH_ECLOSED, answer.result.isEmpty, let failure { throw failure }
        let name = module.descriptor.name
        let result = try? JSONValue(parsing: answer.result)
        if answer.status == MH_OK {
            guard let result, result.objectValue != nil else {
                throw MeshError(.moduleFailed, "module \(name) answered \"\(verb)\" with what is no JSON object")
            }
            return result
        }
        let detail = result?["detail"]?.stringValue?.singleLine ?? ""
        switch answer.status {
        case MH_ENOSUP where detail.isEmpty:
            throw MeshError(.notSupported, "module \(name) cannot do \"\(verb)\"")
        case MH_EDEADLINE where detail.isEmpty:
            throw MeshError(
                .operationTimeout, "module \(name) did not finish \"\(verb)\" within \(deadline.optionText)")
        default:
            throw MeshError(status: answer.status < 0 ? answer.status : MH_EINTERNAL, detail: detail, module: name)
        }
    }
}
