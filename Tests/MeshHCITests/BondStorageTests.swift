// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

struct BondStorageTests {
    @Test(.timeLimit(.minutes(1)))
    func `keys that could not be stored are stored as soon as that is possible`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "bonds-\(UInt64.random(in: 0 ... .max))")
            .path
        try await onLoop { actor in
            var deadlines = HCIDeadlines()
            deadlines.storing = .milliseconds(1) ... .milliseconds(5)
            let controllers = HCIControllers(loop: actor.loop, log: .none, deadlines: deadlines)
            let controller = await controllers.controller(at: .unix(path: "/nonexistent/hci0"), bonds: folder)
            await controller.loadBonds()
            await until(actor.loop) { await controller.bondTrouble != nil }
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            await until(actor.loop) { await controller.bondTrouble == nil }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).count == 1)
            await controllers.close()
        }
        try FileManager.default.removeItem(atPath: folder)
    }
}
