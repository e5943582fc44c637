// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshRuntime

/// Acceptance i of the first issue.
struct RandomWorldTests {
    @Test(arguments: 0..<10)
    func `ten thousand random event sequences break no rule`(_ block: UInt64) {
        var attempts = 0
        for seed in block * 1_000..<(block + 1) * 1_000 {
            var world = World(seed: seed)
            world.run(steps: 60)
            attempts += world.attempts
            if let problem = world.problems.first {
                Issue.record("seed \(seed): \(problem)")
                return
            }
        }
        // The worlds are not idle.
        #expect(attempts > 10_000)
    }

    @Test func `a thousand links lost at once come back in an orderly way`() {
        var machine = ReconnectionStateMachine()
        var generator = SplitMix(state: 3)
        var now = Duration.zero
        var happenings = PriorityIndex<UInt64, Duration>()
        var attempts: [UInt64: String] = [:]
        var ready: [String: UInt64] = [:]
        var most = 0
        var started = 0
        // The server is down for so long: attempts meanwhile are refused.
        var outageEnd = Duration.zero
        func perform(_ actions: [ReconnectionAction]) {
            for case .startAttempt(let device, let generation) in actions {
                started += 1
                attempts[generation] = device
                happenings[generation] = now + .milliseconds(Int.random(in: 5...200, using: &generator))
            }
            most = max(most, attempts.count)
        }
        func settle() {
            while let (generation, time) = happenings.first {
                if let deadline = machine.nextDeadline, deadline < time {
                    now = max(now, deadline)
                    perform(machine.deadlineReached(now: now))
                    continue
                }
                now = max(now, time)
                happenings[generation] = nil
                let device = attempts.removeValue(forKey: generation)!
                if now >= outageEnd {
                    ready[device] = generation
                    perform(machine.linkEstablished(device, generation: generation, now: now))
                    perform(machine.sessionReady(device, generation: generation, now: now))
                } else {
                    let reason = MeshError(.connectionRefused, "down")
                    perform(
                        machine.linkEnded(
                            device, generation: generation, reason: reason, now: now, using: &generator))
                }
                if happenings.isEmpty, ready.count < 1_000, let deadline = machine.nextDeadline {
                    now = max(now, deadline)
                    perform(machine.deadlineReached(now: now))
                }
            }
        }
        for number in 0..<1_000 {
            let settings = DeviceLinkSettings(adapter: .network)
            perform(machine.addDevice("d\(number)", settings, intent: .connect, now: now))
        }
        settle()
        #expect(ready.count == 1_000)
        now += .seconds(60)
        outageEnd = now + .seconds(120)
        let lost = ready
        ready = [:]
        started = 0
        for (device, generation) in lost.sorted(by: { $0.key < $1.key }) {
            let reason = MeshError(.linkClosedByPeer, "gone")
            perform(machine.linkEnded(device, generation: generation, reason: reason, now: now, using: &generator))
        }
        perform(machine.deadlineReached(now: now))
        while ready.count < 1_000 {
            guard let deadline = machine.nextDeadline else { break }
            now = max(now, deadline)
            perform(machine.deadlineReached(now: now))
            settle()
        }
        #expect(ready.count == 1_000)
        #expect(most == 50)
        #expect(started < 20_000)
        #expect(now - outageEnd < .seconds(60))
    }
}
