// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import KISSTransport
import MeshLoop
import MeshTransportAPI
import MeshTransportTesting
import Testing

/// The rules of `MeshTransport`, from the SDK. Not one of them is about KISS: copy this for a transport of your own.
struct KISSConformanceTests {
    @Test func `the transport keeps the rules`() async {
        let conformance = TransportConformance { environment in
            let thread = LoopThread()
            let device = KISSDevice(thread.loop)
            try await device.plugIn()
            let transport = KISSTransport(
                loop: thread.loop, line: SerialLine(path: device.path), environment: environment)
            await device.observe {
                if case .int(let count)? = await transport.diagnostics()["bytes_received"] { count } else { 0 }
            }
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
        let factory = KISSTransportFactory(loop: thread.loop)
        #expect(TransportConformance.checkDescriptor(of: factory, required: ["path": "/dev/ttyUSB0"]) == [])
        #expect(factory.check(["path": "ttyUSB0"]).issues.map(\.option) == ["path"])
        #expect(factory.check(["path": "/dev/ttyUSB0", "baud": 1]).issues.map(\.option) == ["baud"])
        try await thread.shutDown()
    }
}
