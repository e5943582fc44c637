// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshLoop
import MeshTransportAPI
import MeshTransportTesting
import Testing

@testable import Acme

/// The rules of `MeshTransport`, from the SDK. Not one of them is about this device.
struct AcmeConformanceTests {
    @Test func `the transport keeps the rules`() async {
        let conformance = TransportConformance { environment in
            let thread = LoopThread()
            let device = AcmeDevice(thread.loop)
            try await device.start()
            let transport = AcmeTransport(loop: thread.loop, path: device.path, environment: environment)
            return ConformanceSubject(transport: transport, peer: device) {
                await device.stop()
                // Fails when a handle of the loop is left over.
                try await thread.shutDown()
            }
        }
        let report = await conformance.run()
        #expect(report.broken == [], "\(report)")
    }

    @Test func `the description keeps the rules`() async throws {
        let thread = LoopThread()
        let factory = AcmeTransportFactory(loop: thread.loop)
        #expect(TransportConformance.checkDescriptor(of: factory, required: ["path": "/tmp/device.sock"]) == [])
        #expect(factory.check(["path": "device.sock"]).issues.map(\.option) == ["path"])
        try await thread.shutDown()
    }
}
