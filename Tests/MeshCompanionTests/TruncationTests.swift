// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import MeshWire
import Testing

/// Every vector of companion-protocol §3 and of meshcore_py, cut at every offset: an error at an offset inside of what is
/// left, or a valid shorter form, which then is written as it was. §3.1 is in `MeshWireTests`: there it is the stream
/// that is cut.
struct TruncationTests {
    static func cut(_ hex: String, _ recode: (Data) throws -> Data) throws {
        let bytes = try data(hex)
        for length in 0..<bytes.count {
            let shorter = Data(bytes.prefix(length))
            do {
                #expect(try recode(shorter) == shorter, "\(length) bytes of \(hex)")
            } catch let error as DecodeError {
                #expect((0...length).contains(error.offset), "\(length) bytes of \(hex): \(error)")
            }
            // The names of a radio's fields are cut in the middle of a character, too.
            _ = CompanionFrame.json(shorter, .fromRadio, channels: [])
            _ = CompanionFrame.json(shorter, .fromClient, channels: [])
        }
    }

    @Test func `commands`() throws {
        let all =
            CommandVectorTests.vectors.map(\.hex) + PythonClientVectorTests.commands.map(\.hex)
            + PythonClientVectorTests.others.map(\.hex)
        for hex in all { try Self.cut(hex) { try CompanionCommand(decoding: $0).encoded() } }
    }

    @Test func `replies`() throws {
        for hex in AnswerVectorTests.replies.map(\.hex) + PythonClientVectorTests.replies {
            try Self.cut(hex) { try CompanionReply(decoding: $0).encoded() }
        }
    }

    @Test func `pushes`() throws {
        for hex in AnswerVectorTests.pushes.map(\.hex) + [AnswerVectorTests.status] + PythonClientVectorTests.pushes {
            try Self.cut(hex) { try CompanionPush(decoding: $0).encoded() }
        }
    }

    @Test func `packets`() throws {
        for hex in MeshPacketTests.vectors + ["15C1FF00", GroupMessageTests.bergen] + PacketHashTests.adverts {
            try Self.cut(hex) { bytes in
                let packet = try MeshPacket(decoding: bytes)
                _ = try packet.json(channels: try GroupMessageTests.channels())
                return try packet.encoded()
            }
        }
    }

    @Test func `paths`() throws {
        // E1 to E3: as the path of a packet.
        for hex in [
            "1505" + "0102030405" + "aa", "1543" + "010203040506" + "aa", "154a" + PythonClientVectorTests.zeros(21),
        ] {
            try Self.cut(hex) { try MeshPacket(decoding: $0).encoded() }
            _ = try MeshPacket(decoding: try data(hex))
        }
        for hex in ["15c1ff00", "15ffff00", "15bf" + PythonClientVectorTests.zeros(180)] {
            #expect(throws: DecodeError(.invalidField("path_byte"), offset: 1)) {
                try MeshPacket(decoding: try data(hex))
            }
        }
    }

    @Test func `sensor readings`() throws {
        // E4 to E6.
        for hex in ["016700ff", "026882" + "0302014a" + "05732794", "048805c395ed51fe0003e8"]
            + PolylineTests.vectors.map(\.hex)
        {
            try Self.cut(hex) { try CayenneLPP.encode(try CayenneLPP.decode($0)) }
        }
    }
}
