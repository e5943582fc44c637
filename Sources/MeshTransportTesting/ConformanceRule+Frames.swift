// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI

extension ConformanceRule {
    /// Rules about what a link carries.
    static let frames = [
        ConformanceRule("frames of 1 byte up to the maximum are sent whole, others are refused") { context in
            try await context.transport.connect()
            let maximum = context.log.lastUp?.maximumFrameLength ?? 0
            try await context.expectError([.invalidArgument], "send of an empty frame") {
                try await context.transport.send(Data())
            }
            try await context.expectError([.frameTooLong], "send of \(maximum + 1) bytes") {
                try await context.transport.send(Data(repeating: 1, count: maximum + 1))
            }
            try await context.expectError([.frameTooLong], "send of 64 KiB") {
                try await context.transport.send(Data(repeating: 1, count: 65_536))
            }
            for length in [1, maximum - 1, maximum] where length > 0 {
                let frame = [UInt8](repeating: UInt8(truncatingIfNeeded: length), count: length)
                try await context.transport.send(Data(frame))
                if context.peer.abilities.contains(.receiving) {
                    let received = try await context.peer.receiveFrame()
                    try context.expect(received == frame, "\(length) bytes arrived as \(received.count)")
                }
            }
            try context.expect(await context.transport.isConnected, "a refused frame ended the link")
        },
        ConformanceRule("frames of 1 byte up to the maximum are received whole", needs: .sending) { context in
            try await context.transport.connect()
            let stream = await context.transport.receivedData
            let maximum = context.log.lastUp?.maximumFrameLength ?? 0
            let lengths = [1, 2, 14, 15, 16, maximum - 1, maximum]
            for length in lengths { try await context.peer.sendFrame(Array(repeating: 0x3E, count: length)) }
            let received = await context.take(lengths.count, from: stream).map(\.count)
            try context.expect(received == lengths, "the lengths are \(received), not \(lengths)")
        },
        ConformanceRule("frames of one sender keep their order", needs: .receiving) { context in
            try await context.transport.connect()
            for number in 0..<100 { try await context.transport.send(Data(context.numbered(number))) }
            for number in 0..<100 {
                let frame = try await context.peer.receiveFrame()
                try context.expect(frame == context.numbered(number), "frame \(number) is another")
            }
        },
        ConformanceRule("frames of concurrent senders arrive whole", needs: .receiving) { context in
            try await context.transport.connect()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<100 {
                    group.addTask { try await context.transport.send(Data(context.numbered(number))) }
                }
                try await group.waitForAll()
            }
            var arrived: Set<[UInt8]> = []
            for _ in 0..<100 { arrived.insert(try await context.peer.receiveFrame()) }
            try context.expect(
                arrived == Set((0..<100).map { context.numbered($0) }), "\(arrived.count) of 100 frames arrived whole")
        },
        ConformanceRule("a slow consumer loses nothing that is not counted", needs: .sending) { context in
            let total = 5_000
            try await context.transport.connect()
            let stream = await context.transport.receivedData
            let sender = Task {
                for number in 0..<total { try await context.peer.sendFrame(context.numbered(number)) }
            }
            // The consumer begins when the link has had time to fill up.
            for _ in 0..<1_000 { await Task.yield() }
            var numbers: [Int] = []
            for await frame in stream {
                numbers.append(frame.prefix(4).enumerated().reduce(0) { $0 | Int($1.element) << (8 * $1.offset) })
                if numbers.last == total - 1 || numbers.count + context.log.dropped == total { break }
            }
            try await sender.value
            try context.expect(numbers == numbers.sorted(), "the frames are out of order")
            try context.expect(
                numbers.count + context.log.dropped == total,
                "\(numbers.count) received and \(context.log.dropped) counted as dropped of \(total)")
        },
        ConformanceRule("a consumer that is cancelled leaves the link as it is", needs: .sending) { context in
            try await context.transport.connect()
            let consumer = await context.collect()
            consumer.cancel()
            _ = await consumer.value
            try context.expect(await context.transport.isConnected, "the link ended with its consumer")
            let stream = await context.transport.receivedData
            try await context.peer.sendFrame([5])
            try context.expect(await context.take(1, from: stream) == [Data([5])], "the next consumer got nothing")
        },
        ConformanceRule("frames come back as they went, and in order", needs: .echoing) { context in
            try await context.transport.connect()
            let stream = await context.transport.receivedData
            let maximum = context.log.lastUp?.maximumFrameLength ?? 0
            // What is given back of links before this one is passed over, up to a frame that is none of theirs.
            let marker = Data((0..<min(maximum, 12)).map { $0 == 0 ? 0xFF : UInt8.random(in: 0...255) })
            try await context.transport.send(marker)
            for await frame in stream where frame == marker { break }
            let lengths = [1, 2, 15, 16, maximum - 1, maximum].filter { (1...max(maximum, 1)).contains($0) }
            let frames = (lengths + Array(repeating: min(maximum, 20), count: 50)).enumerated().map { index, length in
                Data(context.numbered(index, length: length).prefix(length))
            }
            for (index, frame) in frames.enumerated() {
                try await context.transport.send(frame)
                let received = await context.take(1, from: stream)
                try context.expect(
                    received == [frame], "frame \(index), \(frame.count) bytes, came back as \(received.map(\.count))")
            }
        },
    ]
}
