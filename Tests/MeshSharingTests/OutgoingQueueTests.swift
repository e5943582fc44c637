// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshTestSupport
import Testing

@testable import MeshSharing

struct OutgoingQueueTests {
    static func frame(_ code: UInt8, _ number: UInt8 = 0) -> [UInt8] { [0x3E, 2, 0, code, number] }

    static func taken(_ queue: inout OutgoingQueue) -> [UInt8] {
        var bytes: [UInt8] = []
        queue.takeReady { bytes = Array($0) }
        return bytes
    }

    @Test func `a client that reads gets frames in one piece and in order`() {
        var queue = OutgoingQueue(frameLimit: 4, byteLimit: 100)
        for number in 0..<10 as Range<UInt8> {
            #expect(queue.offer(Self.frame(0x88, number), .log, isBlocked: false) == .accepted)
        }
        #expect(Self.taken(&queue) == (0..<10).flatMap { Self.frame(0x88, $0) })
        #expect(queue.ready.isEmpty)
    }

    @Test func `once blocked, frames wait, and come in order when the client reads again`() {
        var queue = OutgoingQueue(frameLimit: 4, byteLimit: 100)
        #expect(queue.offer(Self.frame(0x83, 1), .precious, isBlocked: true) == .accepted)
        // Still behind the one that waits, though the kernel would take it.
        #expect(queue.offer(Self.frame(0x83, 2), .precious, isBlocked: false) == .accepted)
        #expect(queue.ready.isEmpty && queue.waitingFrames == 2 && queue.waitingBytes == 10)
        queue.drained()
        #expect(Self.taken(&queue) == Self.frame(0x83, 1) + Self.frame(0x83, 2))
        #expect(queue.waitingFrames == 0 && queue.waitingBytes == 0)
    }

    @Test func `logs are dropped first, then adverts, replies never`() {
        var queue = OutgoingQueue(frameLimit: 3, byteLimit: 1_000)
        _ = queue.offer(Self.frame(0x88), .log, isBlocked: true)
        _ = queue.offer(Self.frame(0x80), .advert, isBlocked: true)
        _ = queue.offer(Self.frame(0x09, 1), .precious, isBlocked: true)
        #expect(queue.offer(Self.frame(0x88, 9), .log, isBlocked: true) == .dropped)
        #expect(queue.offer(Self.frame(0x09, 2), .precious, isBlocked: true) == .accepted)
        #expect(queue.offer(Self.frame(0x09, 3), .precious, isBlocked: true) == .accepted)
        #expect(queue.offer(Self.frame(0x80, 9), .advert, isBlocked: true) == .dropped)
        #expect(queue.offer(Self.frame(0x09, 4), .precious, isBlocked: true) == .overflow)
        #expect(queue.dropped == 4)
        queue.drained()
        #expect(Self.taken(&queue) == (1...3).flatMap { Self.frame(0x09, $0) })
    }

    @Test func `what is dropped leaves the others in order, as often as it happens`() {
        var random = SplitMix(state: 11)
        for _ in 0..<50 {
            let limit = 8
            var queue = OutgoingQueue(frameLimit: limit, byteLimit: 1_000)
            // The rule in its plainest form.
            var model: [(kind: OutgoingQueue.Kind, frame: [UInt8])] = []
            for number in 0..<60 as Range<UInt8> {
                let (code, kind) =
                    [(0x88, .log), (0x80, .advert), (0x09, .precious)][Int(random.next() % 3)]
                    as (UInt8, OutgoingQueue.Kind)
                let frame = Self.frame(code, number)
                var expected = OutgoingQueue.Outcome.accepted
                if model.count == limit {
                    let least = model.map(\.kind).min()!
                    if least < kind, kind != .log {
                        model.remove(at: model.firstIndex { $0.kind == least }!)
                    } else {
                        expected = kind == .precious ? .overflow : .dropped
                    }
                }
                if expected == .accepted { model.append((kind, frame)) }
                #expect(queue.offer(frame, kind, isBlocked: true) == expected)
                #expect(queue.waitingFrames == model.count && queue.waitingBytes == model.count * 5)
            }
            queue.drained()
            #expect(Self.taken(&queue) == model.flatMap(\.frame))
            #expect(queue.waitingFrames == 0)
        }
    }

    @Test func `the byte limit counts too`() {
        var queue = OutgoingQueue(frameLimit: 100, byteLimit: 12)
        #expect(queue.offer(Self.frame(0x09), .precious, isBlocked: true) == .accepted)
        #expect(queue.offer(Self.frame(0x09), .precious, isBlocked: true) == .accepted)
        #expect(queue.offer(Self.frame(0x09), .precious, isBlocked: true) == .overflow)
    }

    @Test func `a frame's kind follows from its code`() {
        #expect(OutgoingQueue.Kind(Data([0x88])) == .log)
        #expect(OutgoingQueue.Kind(Data([0x80])) == .advert)
        #expect(OutgoingQueue.Kind(Data([0x8A])) == .advert)
        #expect(OutgoingQueue.Kind(Data([0x83])) == .precious)
        #expect(OutgoingQueue.Kind(Data([0x05])) == .precious)
        #expect(OutgoingQueue.Kind(Data()) == .precious)
    }
}
