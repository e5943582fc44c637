// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBlueZTransport
import MeshLoop
import MeshTransportAPI
import Testing

struct BlueZModuleTests {
    @Test func `its defaults are values of their kinds`() {
        let loop = EventLoop()
        defer { try? loop.shutDown() }
        let descriptor = BlueZTransportFactory(loop: loop, log: .none).descriptor
        #expect(descriptor.options.resolve([:]).issues.isEmpty)
    }
}
