// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// Reads a recording piece by piece, however large it is: no more than one record is kept.
public struct BTSnoopReader: ~Copyable, Sendable {
    /// The largest packet of HCI: ACL data with a length of 16 bits, and H4's indicator (Core Specification 5.4, Vol 4 Part E
    /// §5.4.2).
    static let largestRecord = 1 + 4 + 65_535

    private static let recordHeader = 24

    private var pending: [UInt8] = []
    private var head = 0
    /// How much was read before what is pending.
    private var offset = 0
    private var isOpen = false

    public init() {}

    /// How many bytes of a record, or of the file's header, have come without their rest.
    public var unfinished: Int { pending.count - head }

    /// Whether the file's header has come.
    public var hasHeader: Bool { isOpen }

    /// The next bytes of the file; gives every record that is whole by now. Throws at what is no recording, and must not be
    /// called again then.
    public mutating func bytesReceived(
        _ bytes: [UInt8], _ take: (BTSnoopFile.Record) -> Void
    ) throws(DecodeError) {
        pending += bytes
        if !isOpen {
            let prefix = pending.prefix(BTSnoopFile.header.count)
            guard BTSnoopFile.header.starts(with: prefix) else {
                throw DecodeError(.invalidField("header"), offset: 0)
            }
            guard prefix.count == BTSnoopFile.header.count else { return }
            isOpen = true
            head = prefix.count
        }
        while let record = try next() { take(record) }
        pending.removeFirst(head)
        offset += head
        head = 0
    }

    private mutating func next() throws(DecodeError) -> BTSnoopFile.Record? {
        let start = offset + head
        let count = pending.count - head
        guard count >= Self.recordHeader else { return nil }
        let length = Int(number(at: 4, byteCount: 4))
        guard (1...Self.largestRecord).contains(length) else {
            throw DecodeError(.invalidField("length"), offset: start)
        }
        guard count >= Self.recordHeader + length else { return nil }
        let indicator = pending[head + Self.recordHeader]
        guard let kind = HCIPacketKind(rawValue: indicator) else {
            throw DecodeError(.unknownCode(indicator), offset: start + Self.recordHeader)
        }
        let packet = head + Self.recordHeader + 1
        let record = BTSnoopFile.Record(
            kind: kind, isFromController: number(at: 8, byteCount: 4) & 1 == 1,
            time: Int64(bitPattern: number(at: 16, byteCount: 8)) &- BTSnoopFile.epoch,
            packet: Array(pending[packet..<packet + length - 1]), drops: UInt32(number(at: 12, byteCount: 4)))
        head += Self.recordHeader + length
        return record
    }

    private func number(at place: Int, byteCount: Int) -> UInt64 {
        pending[head + place..<head + place + byteCount].reduce(0) { $0 << 8 | UInt64($1) }
    }
}
