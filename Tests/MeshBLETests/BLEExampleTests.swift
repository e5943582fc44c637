// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBLE
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

// begin: the handbook's example
/// The next `count` frames of a radio, over as many links as it takes.
func listen(to radio: BLETarget, count: Int, over central: any GATTCentral, on loop: EventLoop) async throws -> [Data] {
    var settings = BLETransportSettings(target: radio)
    settings.passkey = BLEPasskey("123456")
    settings.reconnectsAutomatically = true
    let transport = BLETransport(
        loop: loop, central: central, settings: settings,
        environment: TransportEnvironment(log: .none, linkEvents: { _ in }))
    let (links, link) = AsyncStream.makeStream(of: Void.self)
    await transport.setReconnectionHandler { link.yield() }
    await transport.setDisconnectionHandler { _ in link.finish() }
    try await transport.connect()
    link.yield()
    var frames: [Data] = []
    for await _ in links {
        for await frame in await transport.receivedData where frames.count < count {
            frames.append(frame)
            if frames.count == count { await transport.disconnect() }
        }
    }
    return frames
}
// end

/// The example of the handbook's page on BLE.
struct BLEExampleTests {
    @Test func `the example listens over several links`() async throws {
        try await onLoop(time: .virtual) { actor in
            let central = ScriptedCentral(actor.loop)
            let listener = Task(executorPreference: actor.loop.taskExecutor) {
                _ = actor
                return try await listen(
                    to: .name("MeshCore-roof"), count: 2, over: central, on: actor.loop)
            }
            let first = await central.link()
            await central.reached(.readWriteLength)
            // What is ready runs: the link comes up.
            for _ in 0..<50 { await Task.yield() }
            await first.notify([1])
            await first.lose()
            await central.reached(.readWriteLength, count: 2)
            await central.link().notify([2])
            let frames = try await listener.value
            #expect(frames == [Data([1]), Data([2])])
            #expect(await central.openLinks == 0)
        }
    }

    @Test func `the handbook has the same text`() throws {
        let here = URL(filePath: #filePath)
        let source = String(decoding: try Data(contentsOf: here), as: UTF8.self)
        let page = here.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Sources/MeshDaemon/Documentation.docc/BLE.md")
        let handbook = String(decoding: try Data(contentsOf: page), as: UTF8.self)
        let begin = try #require(source.firstRange(of: "// begin: the handbook's example\n"))
        let end = try #require(source[begin.upperBound...].firstRange(of: "// end\n"))
        #expect(handbook.contains("```swift\n" + source[begin.upperBound..<end.lowerBound] + "```\n"))
    }
}
