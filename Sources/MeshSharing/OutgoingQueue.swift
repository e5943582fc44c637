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
        /// It will be written.
        case accepted
        /// It, or a lesser one in its place, was dropped.
        case dropped
        /// It is precious and there is no room: the client must be cut.
        case overflow
    }

    private struct Waiting {
        var kind: Kind
        var framed: [UInt8]
    }

    /// Framed bytes ready to be written, in order.
    private(set) var ready: [UInt8] = []
    /// Frames in `ready`.
    private(set) var readyFrames = 0
    private var waiting: [Waiting] = []
    private var firstWaiting = 0
    private(set) var waitingBytes = 0
    private(set) var dropped: UInt64 = 0
    private let frameLimit: Int
    private let byteLimit: Int

    init(frameLimit: Int, byteLimit: Int) {
        self.frameLimit = frameLimit
        self.byteLimit = byteLimit
    }

    /// Frames that wait for the client to read.
    var waitingFrames: Int { waiting.count - firstWaiting }

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
        return .dropped
    }

    /// What to write now; `ready` is empty afterwards and keeps its memory.
    mutating func takeReady(_ write: (UnsafeRawBufferPointer) -> Void) {
        ready.withUnsafeBytes(write)
        ready.removeAll(keepingCapacity: ready.capacity <= 65_536)
        readyFrames = 0
    }

    /// The kernel has taken all: what waited becomes ready, in order.
    mutating func drained() {
        for frame in waiting[firstWaiting...] { ready.append(contentsOf: frame.framed) }
        readyFrames += waitingFrames
        waiting.removeAll(keepingCapacity: true)
        firstWaiting = 0
        waitingBytes = 0
    }

    private func hasRoom(_ count: Int) -> Bool {
        waitingFrames < frameLimit && waitingBytes + count <= byteLimit
    }

    private mutating func enqueue(_ framed: [UInt8], _ kind: Kind) {
        waiting.append(Waiting(kind: kind, framed: framed))
        waitingBytes += framed.count
    }

    /// Gives up the oldest of the least frames that are less than `kind`.
    private mutating func dropOne(lessThan kind: Kind) -> Bool {
        let candidates = waiting.indices[firstWaiting...].filter { waiting[$0].kind < kind }
        guard let victim = candidates.min(by: { waiting[$0].kind < waiting[$1].kind }) else { return false }
        waitingBytes -= waiting[victim].framed.count
        waiting.remove(at: victim)
        dropped += 1
        return true
    }
}
