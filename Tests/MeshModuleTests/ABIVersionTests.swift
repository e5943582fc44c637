// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import CTransportABI
import FoundationEssentials
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshModuleHost

/// Modules that were built with another minor of the ABI than this host.
@Suite(.timeLimit(.minutes(10))) struct ABIVersionTests {
    @Test(arguments: ["first-minor", "later-minor"])
    func `a module of another minor carries frames`(name: String) async throws {
        try await onLoop { actor in
            let bench = try Bench(name, actor.loop)
            let transport = try bench.transport([:])
            for round in 0..<3 as Range<UInt8> {
                try await transport.connect()
                var frames = await transport.receivedData.makeAsyncIterator()
                try await transport.send(Data([round, 2, 3]))
                #expect(await frames.next(isolation: actor) == Data([round, 2, 3]))
                await transport.disconnect()
                #expect(await frames.next(isolation: actor) == nil)
            }
            await bench.factory.shutDown()
            #expect(bench.recorder.logged.isEmpty)
        }
    }

    @Test func `a module of the first minor has nothing of the later ones`() throws {
        let module = try ModuleLoader().load("first-minor", path: Fixture.path("first-minor"))
        #expect(module.ops.manage == nil)
        #expect(module.ops.manage_cancel == nil)
        #expect(module.descriptor.options.isEmpty)
    }

    @Test func `what a later minor has in addition is passed over`() throws {
        let module = try ModuleLoader().load("later-minor", path: Fixture.path("later-minor"))
        #expect(module.descriptor.options.map(\.name) == ["height"])
        #expect(module.descriptor.version == "9.0.0")
        #expect(module.ops.manage == nil)
    }
}
