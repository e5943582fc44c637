// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshConfig
internal import MeshLoop

/// Where the config comes from; asked again for each reload.
struct ConfigSource: Sendable {
    var files: [String]
    var assignments: [String]
    var environment: [String: String]

    /// Reads and checks everything. Modules that the config names are loaded, or asked in processes of their own, to check
    /// their options, and are the catalog's then, also if the config has errors. Waits for what they say: for when no loop turns.
    func read(_ catalog: ModuleCatalog) -> ConfigReading {
        let input = gathered
        let inquiry = ModuleInquiry()
        while true {
            let reading = HostConfig.reading(input) { catalog.lookUp($0, inquiry) }
            guard let questions = inquiry.takeQuestions() else {
                catalog.accept(inquiry)
                return reading
            }
            inquiry.learn(questions.ask())
        }
    }

    /// The same while the loop serves others: files are read, and modules asked, beside it. The catalog has the modules of a
    /// config without errors only. Nil when the task was cancelled.
    func read(
        _ catalog: ModuleCatalog, beside loop: EventLoop, isolation: isolated (any Actor)? = #isolation
    ) async -> ConfigReading? {
        let input = await loop.blocking { gathered }
        let inquiry = ModuleInquiry()
        while true {
            let reading = HostConfig.reading(input) { catalog.lookUp($0, inquiry) }
            guard let questions = inquiry.takeQuestions() else {
                if reading.config == nil { await catalog.discard(inquiry) } else { catalog.accept(inquiry) }
                return reading
            }
            guard let answers = await questions.ask(beside: loop) else {
                await catalog.discard(inquiry)
                return nil
            }
            inquiry.learn(answers)
        }
    }

    private var gathered: ConfigInput {
        ConfigInput.gathering(explicit: files, environment: environment, settings: assignments)
    }
}
