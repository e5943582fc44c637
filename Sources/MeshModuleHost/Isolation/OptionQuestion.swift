// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
public import MeshTransportAPI

/// Options that a module in a process of its own has not been asked about yet: what it thinks of them, and which device they
/// mean.
public struct OptionQuestion: Hashable, Sendable {
    /// As the module reads them: a JSON object.
    let document: Data

    init(_ options: [String: JSONValue]) {
        document = JSONValue.object(options).serialized()
    }
}

extension ModuleTransportFactory {
    /// What has to be asked before ``validate(_:)`` knows what the module thinks of these options; nil if it knows.
    public func question(_ options: OptionValues) -> OptionQuestion? {
        module.question(options.written(as: descriptor.options))
    }

    /// Asks a process of the module all of it, which ``validate(_:)`` and ``identity(_:)`` know from then on; a question that could not be asked
    /// has an issue that says so, and is open as before.
    ///
    /// Waits for a process, 3 s at most for each answer and for three answers that do not come: before there is a loop that
    /// turns, or on a thread beside it (``EventLoop/blocking(isolation:_:)``).
    public func ask(_ questions: [OptionQuestion]) -> [OptionQuestion: [OptionIssue]] {
        module.ask(questions)
    }
}

extension IsolatedModule {
    /// So many times a process is started anew for what is still to be asked, after one that did not answer.
    private static let lostProcesses = 3

    func question(_ options: [String: JSONValue]) -> OptionQuestion? {
        let question = OptionQuestion(options)
        return (hello.validates || hello.identifies) && verdict(question) == nil ? question : nil
    }

    func ask(_ questions: [OptionQuestion]) -> [OptionQuestion: [OptionIssue]] {
        var answers: [OptionQuestion: [OptionIssue]] = [:]
        var failure: OptionIssue?
        var open = questions[...]
        var losses = 0
        while !open.isEmpty, losses < Self.lostProcesses {
            do throws(ModuleRefusal) {
                var probe = try ModuleProbe(launch)
                _ = try probe.hello(name: descriptor.name)
                while let question = open.first {
                    let verdict = try self.verdict(on: question, probe: &probe)
                    remember(question, verdict)
                    answers[question] = verdict.issues
                    open.removeFirst()
                }
            } catch {
                // The others may be less of a riddle to it.
                let issue = OptionIssue(
                    option: "", message: "the options could not be checked: \(error.description)")
                answers[open.removeFirst()] = [issue]
                failure = issue
                losses += 1
            }
        }
        if let failure { for question in open { answers[question] = [failure] } }
        return answers
    }

    private func verdict(on question: OptionQuestion, probe: inout ModuleProbe) throws(ModuleRefusal) -> Verdict {
        var verdict = Verdict(issues: hello.validates ? try probe.validate(question.document) : [])
        // Only of options that have nothing wrong is it asked which device they mean.
        if hello.identifies, verdict.issues.isEmpty { verdict.identity = try probe.identity(question.document) }
        return verdict
    }
}
