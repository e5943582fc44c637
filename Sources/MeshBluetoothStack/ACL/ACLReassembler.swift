// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Puts the pieces of one link's frames together again (Core Specification 5.4, Vol 3 Part A §7.2.2).
///
/// The specification lets a receiver do as it likes with pieces that do not fit. Here they are dropped with the frame
/// they belong to, and counted; the next frame begins with its own first piece. A frame has at most 65,539 bytes, which
/// its length field cannot exceed, and so has memory.
public struct ACLReassembler: ~Copyable, Sendable {
    /// What a piece led to.
    public enum Result: Sendable, Hashable {
        /// More is to come.
        case incomplete
        case frame(L2CAPFrame)
        case dropped(Fault)
    }

    /// What was wrong.
    public enum Fault: Sendable, Hashable {
        /// A frame began before the last was whole; the last is dropped, the new one is kept.
        case unfinishedFrame
        /// A piece continues nothing.
        case continuationWithoutStart
        /// The pieces are longer than the frame states.
        case tooLong
    }

    /// The start of a frame whose rest has not come; else empty.
    private var partial: [UInt8] = []
    /// Pieces and frames that were dropped.
    public private(set) var faults: UInt64 = 0

    public init() {}

    /// Nothing waits for its rest.
    var isIdle: Bool { partial.isEmpty }

    /// Takes the next piece. After ``Fault/unfinishedFrame`` ask ``takeWholeFrame()`` for the frame that the piece may
    /// have been whole.
    public mutating func pieceReceived(_ boundary: ACLPacket.Boundary, _ payload: [UInt8]) -> Result {
        // Most frames come whole.
        if boundary.isFirst, partial.isEmpty, payload.count >= 4, payload.count == Self.length(payload) {
            return .frame(Self.frame(payload))
        }
        var fault: Fault?
        if boundary.isFirst {
            if !partial.isEmpty { fault = .unfinishedFrame }
            partial = payload
        } else if partial.isEmpty {
            fault = .continuationWithoutStart
        } else {
            partial += payload
        }
        if let needed, partial.count > needed {
            partial = []
            fault = .tooLong
        }
        if let fault {
            faults += 1
            return .dropped(fault)
        }
        return takeWholeFrame().map { .frame($0) } ?? .incomplete
    }

    /// The frame, if it is whole.
    public mutating func takeWholeFrame() -> L2CAPFrame? {
        guard let needed, partial.count == needed else { return nil }
        defer { partial = [] }
        return Self.frame(partial)
    }

    private static func frame(_ bytes: [UInt8]) -> L2CAPFrame {
        L2CAPFrame(channel: UInt16(bytes[2]) | UInt16(bytes[3]) << 8, payload: Array(bytes[4...]))
    }

    /// How long a frame is with its header, which has to be there.
    private static func length(_ bytes: [UInt8]) -> Int { 4 + (Int(bytes[0]) | Int(bytes[1]) << 8) }

    /// How long the frame is with its header; nil as long as the header is not there. An empty first piece is possible.
    private var needed: Int? { partial.count < 4 ? nil : Self.length(partial) }
}
