// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshWire

/// What waits to be written to one client: pure, bounded, and honest about what it drops.
///
/// While the client takes everything, frames go straight into one buffer that is written once a turn. Once the kernel
/// takes no more, up to a number of frames and bytes wait; then received-packet logs are dropped first, other adverts
/// next, and replies never: a client whose replies find no room is cut.
struct OutgoingQueue {
    /// How easily a frame is given up.
    enum Kind: UInt8, Comparable {
        /// RX logs: by far the most frequent, and each is of little worth.
        case log
        /// Adverts and path updates: their content is in the contacts.
        case advert
        /// Anything else: replies, messages waiting, acknowledgements.
        case precious

        init(_ frame: Data) {
            switch frame.first.flatMap(PushCode.init) {
            case .receivedPacketLog: self = .log
            case .advert, .pathUpdated, .newAdvert: self = .advert
            default: self = .precious
            }
        }

        static func < (left: Kind, right: Kind) -> Bool { left.rawValue < right.rawValue }
    }

    /// What became of an offered frame.
    enum Outcome: Equatable {
        /// It will be written, perhaps in the place of a lesser one.
        case accepted
        /// It was dropped.
        case dropped
        /// It is precious and there is no room: the client must be cut.
        case overflow
    }

    private struct Waiting {
        var kind: Kind
        /// Empty once given up: taking it out would move all that came later.
        var framed: [UInt8]
    }

    /// The waiting frames of one kind.
    private struct Standing {
        var count = 0
        /// None of them is before this one in the queue.
        var first = 0
    }

    /// Framed bytes ready to be written, in order.
    private(set) var ready: [UInt8] = []
    /// Frames in `ready`.
    private(set) var readyFrames = 0
    private var waiting: [Waiting] = []
    private var logs = Standing()
    private var adverts = Standing()
    /// Frames that wait for the client to read.
    private(set) var waitingFrames = 0
    private(set) var waitingBytes = 0
    private(set) var dropped: UInt64 = 0
    private let frameLimit: Int
    private let byteLimit: Int

    init(frameLimit: Int, byteLimit: Int) {
        self.frameLimit = frameLimit
        self.byteLimit = byteLimit
    }

    /// Takes one frame in its framing. `isBlocked`: earlier bytes are still on their way to the kernel.
    mutating func offer(_ framed: [UInt8], _ kind: Kind, isBlocked: Bool) -> Outcome {
        if !isBlocked && waitingFrames == 0 {
            ready.append(contentsOf: framed)
            readyFrames += 1
            return .accepted
        }
        if hasRoom(framed.count) {
            enqueue(framed, kind)
            return .accepted
        }
        if kind == .log {
            dropped += 1
            return .dropped
        }
        while !hasRoom(framed.count) {
            guard dropOne(lessThan: kind) else {
                if kind == .precious { return .overflow }
                dropped += 1
                return .dropped
            }
        }
        enqueue(framed, kind)
        return .accepted
    }

    /// What to write now; `ready` is empty afterwards and keeps its memory.
    mutating func takeReady(_ write: (UnsafeRawBufferPointer) -> Void) {
        ready.withUnsafeBytes(write)
        ready.removeAll(keepingCapacity: ready.capacity <= 65_536)
        readyFrames = 0
    }

    /// The kernel has taken all: what waited becomes ready, in order.
    mutating func drained() {
        for frame in waiting { ready.append(contentsOf: frame.framed) }
        readyFrames += waitingFrames
        waiting.removeAll(keepingCapacity: true)
        logs = Standing()
        adverts = Standing()
        waitingFrames = 0
        waitingBytes = 0
    }

    private func hasRoom(_ count: Int) -> Bool {
        waitingFrames < frameLimit && waitingBytes + count <= byteLimit
    }

    private mutating func enqueue(_ framed: [UInt8], _ kind: Kind) {
        switch kind {
        case .log: logs.count += 1
        case .advert: adverts.count += 1
        case .precious: break
        }
        waiting.append(Waiting(kind: kind, framed: framed))
        waitingFrames += 1
        waitingBytes += framed.count
    }

    /// Gives up the oldest of the least frames that are less than `kind`. Looks at each waiting frame twice at most until
    /// the queue has drained, however often it is called.
    private mutating func dropOne(lessThan kind: Kind) -> Bool {
        if kind > .log, logs.count > 0 {
            logs = dropFirst(.log, logs)
        } else if kind > .advert, adverts.count > 0 {
            adverts = dropFirst(.advert, adverts)
        } else {
            return false
        }
        return true
    }

    private mutating func dropFirst(_ kind: Kind, _ standing: Standing) -> Standing {
        var victim = standing.first
        while waiting[victim].kind != kind || waiting[victim].framed.isEmpty { victim += 1 }
        waitingFrames -= 1
        waitingBytes -= waiting[victim].framed.count
        waiting[victim].framed = []
        dropped += 1
        return Standing(count: standing.count - 1, first: victim + 1)
    }
}
