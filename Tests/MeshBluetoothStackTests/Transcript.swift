// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBluetoothStack
import Testing

/// A recording of what a host and its controller said to each other: btsnoop, as Bumble 0.0.236 wrote it (its central
/// against its peripheral on a virtual link). Values are Bumble's, so they are somebody else's reading of the
/// specification.
struct Transcript {
    let records: [BTSnoopFile.Record]

    /// Reads `Transcripts/NAME.btsnoop`.
    init(_ name: String) throws {
        try self.init(recording: Self.file(name))
    }

    /// Reads any recording.
    init(recording bytes: [UInt8]) throws {
        records = try BTSnoopFile.decode(bytes.span.bytes)
    }

    /// The bytes of a recording.
    static func file(_ name: String) throws -> [UInt8] {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Transcripts/\(name).btsnoop")
        return [UInt8](try Data(contentsOf: file))
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
            let packet = try ACLPacket.decode(record.packet.span.bytes)
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
        try records.filter { $0.kind == .command }.map { try HCICommand.decode($0.packet.span.bytes) }
    }

    /// The events that the controller sent.
    func events() throws -> [HCIEvent] {
        try records.filter { $0.kind == .event }.map { try HCIEvent.decode($0.packet.span.bytes) }
    }
}
