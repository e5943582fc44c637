// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshTestSupport
import Testing

@testable import MeshLoop

/// A process with so many descriptors left, and what it tells.
private final class Supply {
    var left: Int
    var told: [String] = []

    init(_ left: Int) {
        self.left = left
    }

    /// Every descriptor is one for real: the reserve closes them.
    func take() -> Int32? {
        guard left > 0 else { return nil }
        left -= 1
        return dup(0)
    }

    func note(_ change: DescriptorReserve.Change) {
        switch change {
        case .exhausted(let error): told.append("exhausted: \(error.operation)")
        case .relieved(let count): told.append("relieved after \(count)")
        }
    }
}

struct DescriptorReserveTests {
    private static let plenty = 10_000

    @Test func `one of the reserve is given up for what failed`() async throws {
        try await onLoop(time: .virtual) { actor in
            let supply = Supply(Self.plenty)
            let reserve = DescriptorReserve(actor.loop) { supply.take() }
            #expect(reserve.count == DescriptorReserve.size)
            supply.left = 0
            var tries = 0
            for _ in 0..<DescriptorReserve.size {
                #expect(
                    reserve.withOneMore {
                        tries += 1
                        return 7
                    } == 7)
            }
            #expect(reserve.withOneMore { 7 } == nil)
            #expect(tries == DescriptorReserve.size && reserve.count == 0)
            supply.left = 2
            #expect(reserve.count == 2)
            // It was not needed.
            supply.left = 1
            #expect(reserve.withOneMore { -EAGAIN } == -EAGAIN)
            supply.left = 0
            #expect(reserve.count == 2)
        }
    }

    @Test func `want is told of once, and its end when there is some room again`() async throws {
        try await onLoop(time: .virtual) { actor in
            let supply = Supply(Self.plenty)
            let reserve = DescriptorReserve(actor.loop) { supply.take() }
            let isRelieved = LoopResult<Void>()
            reserve.onChange = { change in
                supply.note(change)
                if case .relieved = change { isRelieved.set(()) }
            }
            supply.left = 0
            reserve.wanted(EMFILE, "accept")
            reserve.wanted(EMFILE, "accept")
            reserve.hasTurnedAway()
            #expect(reserve.isExhausted && supply.told == ["exhausted: accept"])
            // Enough for the reserve is not enough.
            supply.left = 3
            try await actor.loop.sleep(for: .seconds(100))
            #expect(reserve.isExhausted && supply.told.count == 1)
            supply.left = Self.plenty
            await isRelieved.get()
            #expect(!reserve.isExhausted && supply.told.last == "relieved after 1")
            #expect(reserve.turnedAway == 1)
        }
    }

    @Test func `what failed elsewhere is looked into`() async throws {
        try await onLoop(time: .virtual) { actor in
            let supply = Supply(Self.plenty)
            let reserve = DescriptorReserve(actor.loop) { supply.take() }
            reserve.onChange = { supply.note($0) }
            reserve.check()
            #expect(supply.told.isEmpty)
            supply.left = 0
            reserve.check()
            #expect(supply.told == ["exhausted: open a descriptor"])
        }
    }

    @Test func `a loop has one, as long as somebody holds it`() async throws {
        try await onLoop(time: .virtual) { actor in
            var reserve: DescriptorReserve? = actor.loop.descriptorReserve
            #expect(actor.loop.descriptorReserve === reserve)
            reserve = nil
            #expect(actor.loop.reserve == nil)
        }
    }
}
