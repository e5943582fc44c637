// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBluetoothStack
import Testing

/// A recording of what a host and its controller said to each other: btsnoop, as Bumble 0.0.236 wrote it (its central against
/// its peripheral on a virtual link). Values are Bumble's, so they are somebody else's reading of the specification.
struct Transcript {
    struct Record {
        var isFromController: Bool
        var kind: HCIPacketKind
        /// Without H4's indicator.
        var bytes: [UInt8]
    }

    let records: [Record]

    /// Reads `Transcripts/NAME.btsnoop`: a header of 16 bytes, then records with 24 bytes of their own, all big-endian.
    init(_ name: String) throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Transcripts/\(name).btsnoop")
        let bytes = [UInt8](try Data(contentsOf: file))
        #expect(bytes.prefix(8).elementsEqual("btsnoop\0".utf8))
        func number(_ offset: Int) -> Int { bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
        var records: [Record] = []
        var offset = 16
        while offset + 24 <= bytes.count {
            let length = number(offset + 4)
            let isFromController = number(offset + 8) & 1 == 1
            let packet = bytes[offset + 24..<offset + 24 + length]
            let kind = try #require(HCIPacketKind(rawValue: packet.first ?? 0))
            records.append(Record(isFromController: isFromController, kind: kind, bytes: Array(packet.dropFirst())))
            offset += 24 + length
        }
        self.records = records
    }

    /// All names.
    static let names = [
        "acl_27x2_fragments", "bond_lost", "just_works_sc", "passkey_legacy", "passkey_sc", "wrong_passkey_sc",
    ]

    /// The payloads of a channel in order, put together from their pieces.
    func frames(channel: UInt16) throws -> [(isFromController: Bool, payload: [UInt8])] {
        var host = ACLReassembler()
        var controller = ACLReassembler()
        var frames: [(isFromController: Bool, payload: [UInt8])] = []
        for record in records where record.kind == .acl {
            let packet = try ACLPacket.decode(record.bytes.span.bytes)
            let result =
                record.isFromController
                ? controller.pieceReceived(packet.boundary, packet.payload)
                : host.pieceReceived(packet.boundary, packet.payload)
            if case .frame(let frame) = result, frame.channel == channel {
                frames.append((record.isFromController, frame.payload))
            }
        }
        return frames
    }

    /// The commands that the host sent.
    func commands() throws -> [HCICommand] {
        try records.filter { $0.kind == .command }.map { try HCICommand.decode($0.bytes.span.bytes) }
    }

    /// The events that the controller sent.
    func events() throws -> [HCIEvent] {
        try records.filter { $0.kind == .event }.map { try HCIEvent.decode($0.bytes.span.bytes) }
    }
}
