// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshMockTransport
import MeshTransportAPI
import Testing

struct MockTransportTests {
    @Test func `a test plays the device`() async throws {
        let mock = MockTransport()
        try await mock.connect()
        var frames = await mock.receivedData.makeAsyncIterator()
        try await mock.send(Data([0x16, 3]))
        #expect(await mock.sentData == [Data([0x16, 3])])
        await mock.simulateReceive(Data([0x83]))
        await mock.simulateOK()
        await mock.simulateOK(value: 0x0102)
        await mock.simulateError(code: 2)
        #expect(await frames.next() == Data([0x83]))
        #expect(await frames.next() == Data([0]))
        #expect(await frames.next() == Data([0, 2, 1, 0, 0]))
        #expect(await frames.next() == Data([1, 2]))
        await mock.clearSentData()
        #expect(await mock.sentData == [])
    }

    @Test func `sent frames can be waited for`() async throws {
        let mock = MockTransport()
        try await mock.connect()
        async let sent = mock.waitForSentData(count: 2)
        try await mock.send(Data([1]))
        try await mock.send(Data([2]))
        #expect(await sent == [Data([1]), Data([2])])
    }

    @Test func `sends are dropped and fail as told`() async throws {
        let mock = MockTransport()
        try await mock.connect()
        await mock.dropNextSends(1)
        await mock.failSend(number: 3)
        try await mock.send(Data([1]))
        try await mock.send(Data([2]))
        #expect(await meshError { try await mock.send(Data([3])) }?.code == .operationTimeout)
        try await mock.send(Data([4]))
        #expect(await mock.sentData == [Data([2]), Data([4])])
        #expect(await mock.droppedData == [Data([1])])
    }

    @Test func `a send that is held up fails when the device vanishes`() async throws {
        let mock = MockTransport()
        try await mock.connect()
        await mock.delaySends(by: .seconds(3_600))
        let send = Task { try await mock.send(Data([1])) }
        _ = await mock.waitForSentData(count: 1)
        await mock.vanish()
        #expect(await meshError { try await send.value }?.code == .linkClosed)
        #expect(await !mock.isConnected)
    }

    @Test func `connects fail and hang as told`() async throws {
        let mock = MockTransport()
        await mock.failNextConnects(2, with: MeshError(.authenticationFailed, "wrong PIN"))
        for _ in 0..<2 {
            #expect(await meshError { try await mock.connect() }?.code == .authenticationFailed)
        }
        await mock.hangNextConnect()
        let hanging = Task { try await mock.connect() }
        hanging.cancel()
        #expect(await meshError { try await hanging.value }?.code == .cancelled)
        try await mock.connect()
    }

    @Test func `what a slow consumer misses is counted`() async throws {
        let events = ReportedEvents()
        let mock = MockTransport(environment: events.environment)
        try await mock.connect()
        for _ in 0..<1_025 { await mock.simulateReceive(Data([1])) }
        #expect(await events.next { if case .framesDropped(let count) = $0 { count } else { nil } } == 1)
    }
}
