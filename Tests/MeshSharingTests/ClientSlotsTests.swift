// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTestSupport
import Testing

@testable import MeshSharing

struct ClientSlotsTests {
    static let base = "phone/MCore/192.0.2.7"

    @Test func `the lowest free slot, of each base by itself`() {
        var slots = ClientSlots()
        #expect(slots.join(base: Self.base, client: 10, now: .zero) == 1)
        #expect(slots.join(base: Self.base, client: 11, now: .zero) == 2)
        #expect(slots.join(base: "other", client: 12, now: .zero) == 1)
        #expect(slots.join(base: Self.base, client: 13, now: .zero) == 3)
        #expect(slots.left(client: 11, isGraceful: true, lastHeard: .zero) == nil)
        #expect(slots.join(base: Self.base, client: 14, now: .zero) == 2)
        #expect(slots.count == 4)
    }

    @Test func `a program that comes back after it left finds its own`() {
        var slots = ClientSlots()
        _ = slots.join(base: Self.base, client: 1, now: .zero)
        #expect(slots.left(client: 1, isGraceful: false, lastHeard: .zero) == nil)
        #expect(slots.join(base: Self.base, client: 2, now: .seconds(1)) == 1)
    }

    @Test func `one that came back before its old connection was found dead gets its own then`() {
        var slots = ClientSlots()
        _ = slots.join(base: Self.base, client: 1, now: .zero)
        #expect(slots.join(base: Self.base, client: 2, now: .seconds(30)) == 2)
        #expect(
            slots.left(client: 1, isGraceful: false, lastHeard: .seconds(20))
                == ClientSlots.Handover(client: 2, slot: 1))
        // The slot it had in between is free again.
        #expect(slots.join(base: Self.base, client: 3, now: .seconds(90)) == 2)
    }

    @Test func `a connection that was closed properly is followed by nobody`() {
        var slots = ClientSlots()
        _ = slots.join(base: Self.base, client: 1, now: .zero)
        _ = slots.join(base: Self.base, client: 2, now: .seconds(30))
        #expect(slots.left(client: 1, isGraceful: true, lastHeard: .seconds(20)) == nil)
    }

    @Test func `one that came while the dead one was alive is somebody else`() {
        var slots = ClientSlots()
        _ = slots.join(base: Self.base, client: 1, now: .zero)
        _ = slots.join(base: Self.base, client: 2, now: .seconds(10))
        #expect(slots.left(client: 1, isGraceful: false, lastHeard: .seconds(20)) == nil)
    }

    @Test func `of two that came since, the first is the one that came back`() {
        var slots = ClientSlots()
        _ = slots.join(base: Self.base, client: 1, now: .zero)
        _ = slots.join(base: Self.base, client: 2, now: .seconds(30))
        _ = slots.join(base: Self.base, client: 3, now: .seconds(40))
        #expect(
            slots.left(client: 1, isGraceful: false, lastHeard: .seconds(20))
                == ClientSlots.Handover(client: 2, slot: 1))
    }

    @Test(arguments: [[1, 2], [2, 1]] as [[UInt64]])
    func `who had to come back twice gets its own, whichever dead connection is found first`(_ order: [UInt64]) {
        var slots = ClientSlots()
        var own = 0
        _ = slots.join(base: Self.base, client: 1, now: .zero)
        _ = slots.join(base: Self.base, client: 2, now: .seconds(30))
        _ = slots.join(base: Self.base, client: 3, now: .seconds(60))
        for client in order {
            let handover = slots.left(client: client, isGraceful: false, lastHeard: .seconds(client == 1 ? 20 : 50))
            if let handover, handover.client == 3 { own = handover.slot }
        }
        #expect(own == 1)
    }

    @Test func `two that came back get one each`() {
        var slots = ClientSlots()
        for client in 1...2 as ClosedRange<UInt64> { _ = slots.join(base: Self.base, client: client, now: .zero) }
        for client in 3...4 as ClosedRange<UInt64> {
            _ = slots.join(base: Self.base, client: client, now: .seconds(30))
        }
        #expect(
            slots.left(client: 1, isGraceful: false, lastHeard: .seconds(9)) == ClientSlots.Handover(client: 3, slot: 1)
        )
        #expect(
            slots.left(client: 2, isGraceful: false, lastHeard: .seconds(9)) == ClientSlots.Handover(client: 4, slot: 2)
        )
    }

    @Test func `a slot of one's own is not given up for a higher one`() {
        var slots = ClientSlots()
        _ = slots.join(base: Self.base, client: 1, now: .zero)
        _ = slots.join(base: Self.base, client: 2, now: .zero)
        _ = slots.left(client: 1, isGraceful: true, lastHeard: .zero)
        #expect(slots.join(base: Self.base, client: 3, now: .seconds(30)) == 1)
        #expect(slots.left(client: 2, isGraceful: false, lastHeard: .seconds(20)) == nil)
    }

    @Test func `who says again who it is stays where it is, unless it is somebody else now`() {
        var slots = ClientSlots()
        _ = slots.join(base: Self.base, client: 1, now: .zero)
        _ = slots.join(base: Self.base, client: 2, now: .zero)
        #expect(slots.join(base: Self.base, client: 2, now: .seconds(1)) == 2)
        #expect(slots.join(base: "other", client: 2, now: .seconds(1)) == 1)
        #expect(slots.join(base: Self.base, client: 3, now: .seconds(2)) == 2)
        #expect(slots.count == 3)
    }

    @Test func `a client that never said who it is has no slot to leave`() {
        var slots = ClientSlots()
        #expect(slots.left(client: 1, isGraceful: false, lastHeard: .zero) == nil)
    }

    @Test(arguments: 1...20)
    func `whatever happens, no two of one base have the same slot`(_ seed: Int) {
        var random = SplitMix(state: UInt64(seed))
        var slots = ClientSlots()
        var held: [UInt64: (base: String, slot: Int)] = [:]
        for step in 0..<500 as Range<UInt64> {
            if random.next() % 2 == 0 || held.isEmpty {
                let base = "\(random.next() % 3)"
                let taken = Set(held.values.filter { $0.base == base }.map(\.slot))
                let slot = slots.join(base: base, client: step, now: .seconds(Int(step)))
                #expect(slot == (1...).first { !taken.contains($0) }, "seed \(seed)")
                held[step] = (base, slot)
            } else {
                let clients = held.keys.sorted()
                let client = clients[Int(random.next() % UInt64(clients.count))]
                let gone = held.removeValue(forKey: client)!
                let lastHeard = Duration.seconds(Int(random.next() % (step + 1)))
                let handover = slots.left(client: client, isGraceful: random.next() % 3 == 0, lastHeard: lastHeard)
                if let handover {
                    #expect(handover.slot == gone.slot && held[handover.client]!.base == gone.base, "seed \(seed)")
                    held[handover.client]!.slot = handover.slot
                }
            }
            #expect(slots.count == held.count, "seed \(seed)")
        }
    }
}
