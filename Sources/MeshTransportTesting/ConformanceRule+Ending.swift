// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI

extension ConformanceRule {
    /// Rules about the end of a link.
    static let ending = [
        ConformanceRule("disconnect without connect does nothing") { context in
            await context.transport.disconnect()
            try context.expect(context.log.downs.isEmpty, "down was reported without a link")
            try await context.transport.connect()
        },
        ConformanceRule("disconnect finishes the stream, reports down without a reason, and may be repeated") {
            context in
            try await context.transport.connect()
            let frames = await context.collect()
            await context.transport.disconnect()
            await context.transport.disconnect()
            _ = await frames.value
            try context.expect(await !context.transport.isConnected, "isConnected is true after disconnect")
            try context.expect(context.log.downs.count == 1, "down was reported \(context.log.downs.count) times")
            try context.expect(context.log.downs.first == .some(nil), "a wanted end has a reason")
            try context.expect(context.log.isDownBeforeStreamEnd, "the stream finished before down was reported")
        },
        ConformanceRule("after disconnect a new connect starts a new stream") { context in
            try await context.transport.connect()
            let first = await context.transport.receivedData
            await context.transport.disconnect()
            try await context.transport.connect()
            try context.expect(await context.transport.isConnected, "isConnected is false after the second connect")
            let old = await context.take(1, from: first)
            try context.expect(old.isEmpty, "the first stream gives a frame of the second connection")
            if context.peer.abilities.contains(.sending) {
                let second = await context.transport.receivedData
                try await context.peer.sendFrame([7, 7])
                try context.expect(
                    await context.take(1, from: second) == [Data([7, 7])], "the second stream lacks its frame")
            }
        },
        ConformanceRule("nothing is delivered after disconnect", needs: .sending) { context in
            try await context.transport.connect()
            let stream = await context.transport.receivedData
            for number in 0..<10 { try await context.peer.sendFrame(context.numbered(number)) }
            let first = await context.take(1, from: stream)
            try context.expect(first.count == 1, "the first frame did not come")
            await context.transport.disconnect()
            let late = await context.take(1, from: stream)
            try context.expect(late.isEmpty, "a frame was delivered after disconnect returned")
        },
        ConformanceRule("a lost link reports down with a reason, then finishes the stream", needs: .closing) {
            context in
            try await context.loseLink { try await context.peer.close() }
        },
        ConformanceRule("a reset link reports down with a reason, then finishes the stream", needs: .resetting) {
            context in
            try await context.loseLink { try await context.peer.reset() }
        },
        ConformanceRule("frames that came before the loss are delivered", needs: [.sending, .closing]) { context in
            try await context.transport.connect()
            let stream = await context.transport.receivedData
            for number in 0..<20 { try await context.peer.sendFrame(context.numbered(number)) }
            try await context.peer.close()
            let frames = await context.take(21, from: stream)
            let expected = (0..<20).map { Data(context.numbered($0)) }
            try context.expect(frames == expected, "\(frames.count) of 20 frames were delivered")
        },
        ConformanceRule("send after the loss throws", needs: .closing) { context in
            try await context.transport.connect()
            let frames = await context.collect()
            try await context.peer.close()
            _ = await frames.value
            try await context.expectError([.notConnected, .linkClosed, .linkClosedByPeer], "send after the loss") {
                try await context.transport.send(Data([1]))
            }
            await context.transport.disconnect()
            try context.expect(context.log.downs.count == 1, "down was reported \(context.log.downs.count) times")
        },
        ConformanceRule("after a loss a new connect works", needs: .closing) { context in
            for _ in 0..<3 {
                try await context.transport.connect()
                let frames = await context.collect()
                try await context.peer.close()
                _ = await frames.value
            }
            try await context.transport.connect()
            try await context.transport.send(Data([1]))
        },
        ConformanceRule("half a frame is not delivered", needs: [.sending, .halfFrames, .closing]) { context in
            try await context.transport.connect()
            let frames = await context.collect()
            try await context.peer.sendFrame([1, 2, 3])
            try await context.peer.sendHalfFrame()
            try await context.peer.close()
            let received = await frames.value
            try context.expect(received == [Data([1, 2, 3])], "the stream gave \(received.map { Array($0) })")
        },
    ]
}

extension ConformanceContext {
    fileprivate func loseLink(_ lose: () async throws -> Void) async throws {
        try await transport.connect()
        let frames = await collect()
        if peer.abilities.contains(.sending) { try await peer.sendFrame([1]) }
        try await lose()
        _ = await frames.value
        try expect(log.isDownBeforeStreamEnd, "the stream finished before down was reported")
        try expect(log.downs.count == 1, "down was reported \(log.downs.count) times")
        try expect(log.downs.first??.message.isEmpty == false, "down has no reason")
        try expect(await !transport.isConnected, "isConnected is true after the loss")
    }
}
