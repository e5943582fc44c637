// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshConfig
internal import MeshLoop
internal import MeshModuleHost
internal import MeshTransportAPI

/// What is asked of modules in processes of their own while a config is read: what they are, and what they think of options.
///
/// An answer costs a process and up to some seconds, and a reading is one plain call. So a reading notes what it would like to
/// know and goes on without; what it has noted is asked, wherever there is time to wait, and it is done again with the
/// answers, until nothing is left to ask. Each question is put once, answered or not, so that comes soon; a later reading puts
/// those that failed again, since what was wrong need not lie in the module's file.
final class ModuleInquiry {
    /// A module that nobody has spoken to.
    struct Stranger: Hashable, Sendable {
        var name: String
        var launch: ModuleLaunch
    }

    /// What is to be asked.
    struct Questions: Sendable {
        fileprivate var strangers: [Stranger] = []
        fileprivate var options: [String: (factory: ModuleTransportFactory, questions: [OptionQuestion])] = [:]

        /// Asks all of it and waits for the answers. One module after the other: a thread of the pool that waits for one that
        /// is stuck is missed by those who write files.
        func ask() -> Answers {
            var answers = Answers()
            for stranger in strangers {
                do throws(ModuleRefusal) {
                    answers.strangers[stranger] = .success(try IsolatedModule(stranger.name, stranger.launch))
                } catch {
                    answers.strangers[stranger] = .failure(error)
                }
            }
            for (name, asked) in options { answers.options[name] = asked.factory.ask(asked.questions) }
            return answers
        }

        /// The same on a thread beside the loop. Nil as soon as the task is cancelled: nobody who stops waits for a module
        /// that may be stuck. On the loop.
        func ask(
            beside loop: EventLoop, isolation: isolated (any Actor)? = #isolation
        ) async -> Answers? {
            let wait = Wait()
            Task(executorPreference: loop.taskExecutor) { wait.end(await loop.blocking { ask() }) }
            return await withTaskCancellationHandler {
                await wait.result.get()
            } onCancel: {
                loop.perform { wait.end(nil) }
            }
        }
    }

    /// What has come of it.
    struct Answers: Sendable {
        fileprivate var strangers: [Stranger: Result<IsolatedModule, ModuleRefusal>] = [:]
        /// By the module's name.
        fileprivate var options: [String: [OptionQuestion: [OptionIssue]]] = [:]
    }

    /// Who waits for answers. Used on the loop's thread only: that is what makes it Sendable.
    private final class Wait: @unchecked Sendable {
        let result = LoopResult<Answers?>()
        private var isOver = false

        func end(_ answers: Answers?) {
            guard !isOver else { return }
            isOver = true
            result.set(answers)
        }
    }

    /// What a reading gets of a module that the config names.
    enum Finding {
        /// With the module of a process of its own, where it is one.
        case found(ModuleTransportFactory, IsolatedModule?)
        case refused(ModuleStatus)
    }

    private var open = Questions()
    private var answers = Answers()
    /// By the module's name. They are the catalog's to take: the reading may come to nothing.
    var findings: [String: Finding] = [:]

    /// The findings, for good; sorted by name.
    func takeFindings() -> [(name: String, Finding)] {
        defer { findings = [:] }
        return findings.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// What has been noted since this was looked at last; nil: nothing, the reading is complete.
    func takeQuestions() -> Questions? {
        defer { open = Questions() }
        return open.strangers.isEmpty && open.options.isEmpty ? nil : open
    }

    func learn(_ new: Answers) {
        answers.strangers.merge(new.strangers) { $1 }
        answers.options.merge(new.options) { old, new in old.merging(new) { $1 } }
    }

    /// The module, once it has said what it is; nil before that.
    func introduced(_ stranger: Stranger) throws(ModuleRefusal) -> IsolatedModule? {
        if let answer = answers.strangers[stranger] { return try answer.get() }
        if !open.strangers.contains(stranger) { open.strangers.append(stranger) }
        return nil
    }

    /// The factory as a reading uses it: what its module has to say of options counts once it has been asked.
    func asking(_ factory: ModuleTransportFactory) -> any TransportFactory { Asking(factory: factory, inquiry: self) }

    fileprivate func judge(_ options: OptionValues, by factory: ModuleTransportFactory) -> [OptionIssue] {
        guard let question = factory.question(options) else { return factory.validate(options) }
        let name = factory.descriptor.name
        if let answer = answers.options[name]?[question] { return answer }
        var asked = open.options[name] ?? (factory, [])
        if !asked.questions.contains(question) { asked.questions.append(question) }
        open.options[name] = asked
        return []
    }

    /// Lives as long as a reading, on its thread: that is what makes it Sendable.
    private struct Asking: TransportFactory, @unchecked Sendable {
        let factory: ModuleTransportFactory
        let inquiry: ModuleInquiry

        var descriptor: TransportDescriptor { factory.descriptor }
        func validate(_ options: OptionValues) -> [OptionIssue] { inquiry.judge(options, by: factory) }
        func identity(_ options: OptionValues) -> String? { factory.identity(options) }

        func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport {
            try factory.makeTransport(settings)
        }
    }
}
