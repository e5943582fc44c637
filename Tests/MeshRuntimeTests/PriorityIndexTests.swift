// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTestSupport
import Testing

@testable import MeshRuntime

struct PriorityIndexTests {
    @Test func `it agrees with a sorted list under random changes`() {
        var generator = SplitMix(state: 42)
        var index = PriorityIndex<Int, Int>()
        var model: [Int: Int] = [:]
        for _ in 0..<20_000 {
            let key = Int.random(in: 0..<60, using: &generator)
            let priority = Bool.random(using: &generator) ? Int.random(in: 0..<1_000, using: &generator) : nil
            index[key] = priority
            model[key] = priority
            #expect(index[key] == priority)
            #expect(index.count == model.count)
            #expect(index.first?.priority == model.values.min())
        }
        var last = Int.min
        while let (key, priority) = index.first {
            #expect(priority >= last)
            #expect(model[key] == priority)
            last = priority
            index[key] = nil
        }
        #expect(index.isEmpty)
    }
}
