// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshLoop
import MeshTransportAPI
import MeshTransportTesting
import Testing

@testable import Acme

struct AcmeConformanceTests {
    @Test func `the description keeps the rules`() async throws {
        let thread = LoopThread()
        let factory = AcmeTransportFactory(loop: thread.loop)
        #expect(TransportConformance.checkDescriptor(of: factory, required: ["path": "/tmp/device.sock"]) == [])
        #expect(factory.check(["path": "device.sock"]).issues.map(\.option) == ["path"])
        try await thread.shutDown()
    }

    // YOURS: the rules of the transport itself, with a device that plays along; VendorTransport-Swift in meshhost's
    // examples has one to copy (KISSConformanceTests.swift, KISSDevice.swift).
}
