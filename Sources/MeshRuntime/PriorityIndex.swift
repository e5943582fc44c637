// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Keys in the order of their priorities, each key at most once: a binary heap that knows where its keys are.
///
/// The first is found in O(1); adding, changing and removing any key cost O(log n). Deadlines of all devices and the
/// queues of those that wait for a slot are kept in it, so 1,000 devices that fail together cost 1,000 × log 1,000.
struct PriorityIndex<Key: Hashable, Priority: Comparable> {
    private var heap: [(key: Key, priority: Priority)] = []
    private var positions: [Key: Int] = [:]

    var isEmpty: Bool { heap.isEmpty }
    var count: Int { heap.count }
    /// The key with the least priority.
    var first: (key: Key, priority: Priority)? { heap.first }

    /// The priority of a key. Setting adds, moves or (nil) removes it.
    subscript(key: Key) -> Priority? {
        get { positions[key].map { heap[$0].priority } }
        set {
            switch (positions[key], newValue) {
            case (nil, nil): break
            case (nil, let priority?):
                heap.append((key, priority))
                positions[key] = heap.count - 1
                moveUp(heap.count - 1)
            case (let position?, let priority?):
                guard heap[position].priority != priority else { return }
                heap[position].priority = priority
                moveDown(moveUp(position))
            case (let position?, nil):
                swap(position, heap.count - 1)
                heap.removeLast()
                positions[key] = nil
                if position < heap.count { moveDown(moveUp(position)) }
            }
        }
    }

    @discardableResult
    private mutating func moveUp(_ start: Int) -> Int {
        var position = start
        while position > 0 {
            let parent = (position - 1) / 2
            guard heap[position].priority < heap[parent].priority else { break }
            swap(position, parent)
            position = parent
        }
        return position
    }

    private mutating func moveDown(_ start: Int) {
        var position = start
        while true {
            var least = position
            for child in (2 * position + 1)...(2 * position + 2) where child < heap.count {
                if heap[child].priority < heap[least].priority { least = child }
            }
            guard least != position else { return }
            swap(position, least)
            position = least
        }
    }

    private mutating func swap(_ a: Int, _ b: Int) {
        guard a != b else { return }
        heap.swapAt(a, b)
        positions[heap[a].key] = a
        positions[heap[b].key] = b
    }
}
