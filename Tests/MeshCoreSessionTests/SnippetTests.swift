// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshMockTransport
import Testing

/// The library as its first page shows it, against the double that people use for their own tests.
struct SnippetTests {
    let packet = hex("8428abff01020304")

    @Test func `the snippet works as it is written`() async throws {
        let mock = MockTransport()
        let session = MeshCoreSession(transport: mock)
        try await session.start()
        await mock.simulateReceive(packet)
        #expect(await mock.sentData == [Data([0x16, 0x03])])
        await session.stop()
    }

    @Test func `what the radio says after the start is told`() async throws {
        let mock = MockTransport()
        let session = MeshCoreSession(transport: mock)
        let events = await session.events
        try await session.start()
        #expect(await session.state == .connected)
        await mock.simulateReceive(packet)
        // P3 of the reference: 10 dB, -85 dBm.
        let expected = ReceivedRawData(
            signalToNoise: SignalToNoise(quarters: 40), rssi: -85, payload: Data([1, 2, 3, 4]))
        #expect(await events.first { $0 == .rawData(expected) } != nil)
        await session.stop()
    }

    @Test func `a program may use the session at once`() async throws {
        let mock = MockTransport()
        // A busy machine must not make the radio late.
        var settings = MeshSessionSettings()
        settings.lane.replyTimeout = .seconds(600)
        let session = MeshCoreSession(transport: mock, settings: settings)
        try await session.start()
        async let battery = session.batteryAndStorage()
        await mock.simulateReceive(Golden.deviceInfo)
        #expect(await mock.waitForSentData(count: 2)[1] == hex("01032020202020206d657368686f7374"))
        await mock.simulateReceive(Golden.selfInfo)
        // The call, and the session's own question for the time, in some order.
        let commands = await mock.waitForSentData(count: 3)
        await mock.simulateReceive(commands[2] == hex("14") ? hex("0c8000") : Golden.time)
        #expect(Set(await mock.waitForSentData(count: 4)[2...]).contains(hex("14")))
        if commands[2] != hex("14") { await mock.simulateReceive(hex("0c8000")) }
        #expect(try await battery.batteryMillivolts == 128)
        await session.stop()
    }
}
