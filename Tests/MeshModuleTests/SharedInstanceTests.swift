// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import CTransportABI
import FoundationEssentials
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshModuleHost

/// The instance without a device: how long it lives, and what it says when it lives no more.
@Suite(.timeLimit(.minutes(20))) struct SharedInstanceTests {
    @Test func `a module without multilink is stopped when nobody asks it any more`() async throws {
        try await onLoop { actor in
            let module = PaperModule()
            let factory = module.factory(actor.loop)
            #expect(await factory.examine([]).isEmpty)
            #expect(module.starts == 1)
            // What it held is free when the answer is there.
            #expect(module.running == 0)
            await factory.shutDown()
            #expect(module.starts == 1)
        }
    }

    @Test func `those who ask at the same time ask one instance`() async throws {
        try await onLoop { actor in
            let module = PaperModule()
            module.isSilent = true
            let factory = module.factory(actor.loop)
            let first = Task(executorPreference: actor.loop.taskExecutor) { await factory.examine([]) }
            let second = Task(executorPreference: actor.loop.taskExecutor) { await factory.examine([]) }
            try await until(actor.loop) { module.requests.count == 2 }
            #expect(module.running == 1)
            module.answer()
            // The other one still waits.
            _ = await first.value
            #expect(module.running == 1)
            module.answer()
            _ = await second.value
            #expect((module.starts, module.running) == (1, 0))
            await factory.shutDown()
        }
    }

    @Test func `the end of the last scan is the end of the instance`() async throws {
        try await onLoop { actor in
            let module = PaperModule()
            let factory = module.factory(actor.loop)
            for try await result in try await factory.scan() {
                #expect(result.address == "paper")
                break
            }
            try await until(actor.loop) { module.running == 0 }
            // A search that fails ends as well.
            let results = try await factory.scan()
            #expect(module.running == 1)
            module.post(.scanFailed(MH_EADAPTER, detail: "it is off"))
            #expect(await code { for try await _ in results {} } == .adapterUnavailable)
            try await until(actor.loop) { module.running == 0 }
            #expect(module.starts == 2)
            await factory.shutDown()
        }
    }

    @Test func `a module with multilink goes on`() async throws {
        try await onLoop { actor in
            let module = PaperModule(capabilities: MH_CAP_MULTILINK)
            let factory = module.factory(actor.loop)
            _ = await factory.examine([])
            _ = await factory.examine([])
            #expect((module.starts, module.running) == (1, 1))
            await factory.shutDown()
            #expect(module.running == 0)
        }
    }

    @Test func `an instance that has ended says why, and not that it lacks the verb`() async throws {
        try await onLoop { actor in
            let module = PaperModule(capabilities: MH_CAP_SCAN)
            let instance = try ModuleInstance(
                module, loop: actor.loop, log: .none, options: [:], settings: ModuleSettings())
            module.isSilent = true
            let asked = Task(executorPreference: actor.loop.taskExecutor) {
                await failure { _ = try await instance.manage(MH_VERB_PAIR, [:], within: .seconds(600)) }
            }
            try await until(actor.loop) { module.requests.count == 1 }
            module.post(.failed(MeshError.moduleFailedStatus, detail: "module paper crashed: it was torn"))
            let during = await asked.value
            #expect(during?.code == .moduleFailed)
            #expect(during?.message == "module paper crashed: it was torn")
            let after = await failure { _ = try await instance.manage(MH_VERB_PAIR, [:], within: .seconds(600)) }
            #expect(after?.code == .moduleFailed)
            #expect(after?.message == "module paper crashed: it was torn")
            let scan = await failure { _ = try instance.scan([:]) {} }
            #expect(scan?.message == "module paper crashed: it was torn")
            await instance.shutDown()
        }
    }

    /// The `MeshError` that `body` throws.
    private func failure(
        isolation: isolated (any Actor)? = #isolation, of body: () async throws -> Void
    ) async -> MeshError? {
        do {
            try await body()
            return nil
        } catch {
            return error as? MeshError
        }
    }
}

/// A module that counts its instances and does little else. Used on one loop's thread only: that is what makes it Sendable.
private final class PaperModule: HostedModule, @unchecked Sendable {
    private final class Backend: ModuleBackend {
        let module: PaperModule
        let inbox: InstanceInbox

        init(_ module: PaperModule, _ inbox: InstanceInbox) {
            self.module = module
            self.inbox = inbox
        }

        func connect(_ link: mh_link, device: String, options: Data) -> mh_status { MH_ENOSUP }
        func disconnect(_ link: mh_link) -> mh_status { MH_ENOSUP }
        func send(
            _ link: mh_link, _ frame: Data, cookie: UInt64, withoutResponse: Bool
        ) -> (accepted: mh_status, done: mh_status?) { (MH_ENOSUP, nil) }
        func framesTaken(_ link: mh_link, frames: Int, bytes: Int) {}
        func forget(_ link: mh_link) {}

        func scan(isOn: Bool, filter: Data) -> mh_status {
            if isOn { inbox.post(.found(ScanResult(address: "paper", name: ""))) }
            return MH_OK
        }

        func manage(_ request: UInt64, verb: String, params: Data) -> mh_status {
            module.requests.append((request, inbox))
            if !module.isSilent { module.answer() }
            return MH_OK
        }

        func cancelManage(_ request: UInt64) -> mh_status { MH_ENOSUP }
        func diagnostics() async -> Data? { nil }
        var facts: [String: JSONValue] { [:] }

        func stop() -> mh_status {
            inbox.post(.stopped)
            return MH_OK
        }

        func kill() -> Bool { false }
        func destroy() { module.running -= 1 }
    }

    let descriptor: TransportDescriptor
    private(set) var starts = 0
    private(set) var running = 0
    /// What has not been answered.
    private(set) var requests: [(number: UInt64, inbox: InstanceInbox)] = []
    private var inbox: InstanceInbox?
    /// Answers when the test says so.
    var isSilent = false

    init(capabilities: UInt64 = MH_CAP_SCAN) {
        descriptor = TransportDescriptor(
            name: "paper", version: "1.0.0", vendor: "fixture vendor", license: "Apache-2.0",
            capabilities: TransportCapabilities(rawValue: capabilities), options: [])
    }

    func factory(_ loop: EventLoop) -> ModuleTransportFactory {
        ModuleTransportFactory(hosting: self, loop: loop, log: .none, settings: ModuleSettings())
    }

    /// Answers what was asked first.
    func answer() {
        let request = requests.removeFirst()
        request.inbox.managed(request.number, MH_OK, Data("{}".utf8))
    }

    /// Says something of the instance that was started last.
    func post(_ event: HostEvent) {
        inbox?.post(event)
    }

    var canScan: Bool { descriptor.capabilities.rawValue & MH_CAP_SCAN != 0 }
    var canSendWithoutResponse: Bool { false }
    var canResume: Bool { true }
    var status: ModuleStatus { ModuleStatus(name: "paper", path: nil, state: .loaded) }
    func validate(_ options: [String: JSONValue]) -> [OptionIssue] { [] }
    func identity(_ options: [String: JSONValue]) -> String? { nil }
    func settled() async {}

    func start(
        _ options: [String: JSONValue], inbox: InstanceInbox, loop: EventLoop, log: LogSink, settings: ModuleSettings
    ) throws(MeshError) -> any ModuleBackend {
        starts += 1
        running += 1
        self.inbox = inbox
        return Backend(self, inbox)
    }
}
