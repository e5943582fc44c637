// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshHCITransport
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

private let environment = ProcessInfo.processInfo.environment
private let port = environment["MESHHOST_HCI_PORT"]

/// The module's transport, as a host uses it. In the same suite: a controller has one user at a time.
extension HCIRadioTests {
    @Test(.timeLimit(.minutes(10))) func `frames go both ways, and again after the link was ended`() async throws {
        try await onLoop { actor in
            let factory = HCITransportFactory(loop: actor.loop, log: .none)
            var written: [String: JSONValue] = [
                "name": .string(environment["MESHHOST_HCI_RADIO"] ?? "Roof"), "bond_dir": "",
                "controller": .string(try #require(port)),
            ]
            written["pin"] = environment["MESHHOST_HCI_PIN"].map { .string($0) }
            let (values, issues) = factory.check(written)
            #expect(issues.isEmpty)
            let transport = try factory.makeTransport(
                TransportSettings(
                    device: "roof", options: values, written: written,
                    environment: TransportEnvironment(log: .none) { _ in }))
            for _ in 1...3 {
                try await transport.connect()
                var frames = await transport.receivedData.makeAsyncIterator()
                try await transport.send(Data([1, 2, 3]))
                let frame = await frames.next()
                #expect(frame == Data("echo:".utf8) + [1, 2, 3])
                await transport.disconnect()
            }
            await factory.close()
        }
    }
}
