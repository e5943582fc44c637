// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Finds HCI packets in the byte stream of a UART, TCP or Unix socket (H4: Core Specification 5.4, Vol 4 Part A §2).
///
///     ┌─────────────┐ indicator of no packet that a controller sends,   ┌──────┐
///     │ synchronous │ or a length beyond the ceiling                    │ lost │
///     │             │ ────────────────────────────────────────────────▶ │      │
///     └─────────────┘ ◀──────────────────────────────────────────────── └──────┘
///                                     restart()
///
/// H4 has no marker to look for and no checksum, so a stream that is out of step once stays so: the decoder then
/// discards everything, and its owner resets the controller and opens the line anew (Vol 4 Part A §4). The packets
/// depend on the bytes alone, not on how they were cut. Whole packets are handed out in place; a partial one is copied,
/// and memory is bounded by one packet.
public struct H4Decoder: ~Copyable, Sendable {
    public struct Configuration: Sendable {
        /// What may come: a controller sends no commands.
        public var accepted: Set<HCIPacketKind>
        /// The largest payload of an ACL packet. A host announces none, and no controller known sends more than 1,021
        /// bytes; what states more is noise.
        public var largestDataPayload: Int

        public init(
            accepted: Set<HCIPacketKind> = [.event, .acl, .synchronous, .isochronous], largestDataPayload: Int = 4096
        ) {
            self.accepted = accepted
            self.largestDataPayload = largestDataPayload
        }
    }

    /// Whether the decoder knows where packets begin.
    public enum Synchrony: Sendable, Hashable {
        case kept
        /// A packet cannot begin with this byte, or be of this length.
        case lost(Finding)
    }

    /// What showed that the stream is out of step.
    public enum Finding: Sendable, Hashable {
        case indicator(UInt8)
        case length(HCIPacketKind, Int)
    }

    public let configuration: Configuration
    public private(set) var synchrony = Synchrony.kept
    /// The start of a packet with its indicator, whose rest has not come; else empty.
    private var partial: [UInt8] = []

    public init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    /// Whether the start of a packet waits for its rest.
    public var hasPartialPacket: Bool { !partial.isEmpty }

    /// Takes the next bytes and hands out each packet that they complete, without its indicator. A packet is valid
    /// during the call of `onPacket` only. Once synchrony is lost nothing more comes out.
    public mutating func bytesReceived(_ input: RawSpan, onPacket: (HCIPacketKind, RawSpan) -> Void) -> Synchrony {
        input.withUnsafeBytes { bytes in
            var position = 0
            while synchrony == .kept, position < bytes.count {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[position...])
                position += partial.isEmpty ? takeWhole(rest, onPacket) : takeRest(rest, onPacket)
            }
        }
        return synchrony
    }

    /// The line was opened anew: what came before is forgotten.
    public mutating func restart() {
        synchrony = .kept
        partial.removeAll(keepingCapacity: true)
    }

    /// What the bytes at a packet's start ask for.
    private enum Need {
        /// This many in all, as far as they say.
        case bytes(Int)
        case nothing(Finding)
    }

    private static func need(_ bytes: UnsafeRawBufferPointer, _ configuration: Configuration) -> Need {
        guard let kind = HCIPacketKind(rawValue: bytes[0]), configuration.accepted.contains(kind) else {
            return .nothing(.indicator(bytes[0]))
        }
        let header = 1 + kind.headerLength
        guard bytes.count >= header else { return .bytes(header) }
        let payload = kind.payloadLength(header: UnsafeRawBufferPointer(rebasing: bytes[1..<header]))
        guard kind != .acl || payload <= configuration.largestDataPayload else {
            return .nothing(.length(kind, payload))
        }
        return .bytes(header + payload)
    }

    private mutating func lose(_ finding: Finding) {
        synchrony = .lost(finding)
        partial.removeAll(keepingCapacity: true)
    }

    /// Takes a packet that begins with the first byte; returns how many bytes are done with.
    private mutating func takeWhole(
        _ bytes: UnsafeRawBufferPointer, _ onPacket: (HCIPacketKind, RawSpan) -> Void
    ) -> Int {
        switch Self.need(bytes, configuration) {
        case .nothing(let finding):
            lose(finding)
            return 0
        case .bytes(let needed):
            guard bytes.count >= needed else {
                partial.append(contentsOf: bytes)
                return bytes.count
            }
            Self.handOut(UnsafeRawBufferPointer(rebasing: bytes[..<needed]), onPacket)
            return needed
        }
    }

    /// Adds to the partial packet; returns how many bytes are done with.
    private mutating func takeRest(
        _ bytes: UnsafeRawBufferPointer, _ onPacket: (HCIPacketKind, RawSpan) -> Void
    ) -> Int {
        let settings = configuration
        var taken = 0
        // At first up to the end of the header, which states how much follows it.
        while true {
            switch partial.withUnsafeBytes({ Self.need($0, settings) }) {
            case .nothing(let finding):
                lose(finding)
                return taken
            case .bytes(let needed) where needed == partial.count:
                partial.withUnsafeBytes { Self.handOut($0, onPacket) }
                partial.removeAll(keepingCapacity: true)
                return taken
            case .bytes(let needed):
                let count = min(needed - partial.count, bytes.count - taken)
                if count == 0 { return taken }
                partial.append(contentsOf: bytes[taken..<taken + count])
                taken += count
            }
        }
    }

    private static func handOut(_ packet: UnsafeRawBufferPointer, _ onPacket: (HCIPacketKind, RawSpan) -> Void) {
        guard let kind = HCIPacketKind(rawValue: packet[0]) else { return }
        onPacket(kind, UnsafeRawBufferPointer(rebasing: packet[1...]).bytes)
    }
}
