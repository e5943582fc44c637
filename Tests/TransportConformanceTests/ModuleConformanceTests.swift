// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshLoop
import MeshModuleHost
import MeshTransportAPI
import MeshTransportTesting
import Testing

/// A module of ours, as it is loaded into the daemon and as it runs in a process of its own: both keep the rules.
@Suite(.serialized, .timeLimit(.minutes(20))) struct ModuleConformanceTests {
    @Test(arguments: ModuleIsolation.allCases)
    func `the TCP module keeps the rules of a transport`(isolation: ModuleIsolation) async throws {
        let folder = try #require(ModuleLocator().programFolder)
        let path = "\(folder)/libmeshhost-tcp.so"
        let thread = LoopThread()
        let makeFactory: @Sendable () throws -> ModuleTransportFactory
        switch isolation {
        case .inProcess:
            let module = try ModuleLoader().load("tcp", path: path)
            makeFactory = { ModuleTransportFactory(module: module, loop: thread.loop, log: .none) }
        case .process:
            // On the loop's thread: it waits for a process, and must not hold up other tests.
            let module = try await LoopActor(thread.loop).run { _ in
                try IsolatedModule(
                    "tcp", ModuleLaunch(.library(name: "tcp", path: path), runner: "\(folder)/meshhost"))
            }
            makeFactory = { ModuleTransportFactory(module: module, loop: thread.loop, log: .none) }
        }
        let conformance = TransportConformance(timeLimit: .seconds(600)) { environment in
            let peer = try await LoopbackPeer.start(thread.loop)
            let factory = try makeFactory()
            let written: [String: JSONValue] = ["host": .string("127.0.0.1:\(peer.port)"), "layout_check": false]
            let transport = try factory.makeTransport(
                TransportSettings(
                    device: "roof", options: factory.check(written).values, written: written,
                    environment: environment))
            return ConformanceSubject(transport: transport, peer: peer) {
                await peer.stop()
                await factory.shutDown()
            }
        }
        let report = await conformance.run()
        #expect(report.broken == [], "\(report)")
        try await thread.shutDown()
    }
}
