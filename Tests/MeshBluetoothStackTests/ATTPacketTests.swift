// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshWire
import Testing

struct ATTPacketTests {
    /// Layouts that end with a value of any length.
    private func hasOpenEnd(_ opcode: UInt8) -> Bool {
        switch ATTOpcode(rawValue: opcode) {
        case .readResponse, .readBlobResponse, .writeRequest, .writeCommand, .prepareWriteRequest,
            .prepareWriteResponse, .notification, .indication, .findByTypeValueRequest, .readByTypeResponse,
            .readByGroupTypeResponse, .findInformationResponse, .findByTypeValueResponse, .readByTypeRequest,
            .readByGroupTypeRequest, nil:
            true
        case .errorResponse, .exchangeMTURequest, .exchangeMTUResponse, .findInformationRequest, .readRequest,
            .readBlobRequest, .writeResponse, .executeWriteRequest, .executeWriteResponse, .confirmation:
            false
        }
    }

    private func verify(_ bytes: [UInt8]) {
        DecoderVerifier(decode: { try ATTPacket.decode($0) }, hasOpenEnd: hasOpenEnd(bytes[0])).verify(bytes)
    }

    @Test(arguments: Transcript.names) func `packets of the transcripts come out as they went in`(name: String) throws {
        for frame in try Transcript(name).frames(channel: L2CAPFrame.attributeChannel) {
            let packet = try ATTPacket.decode(frame.payload.span.bytes)
            #expect(packet.bytes == frame.payload)
            if case .other = packet { Issue.record("\(frame.payload)") }
            if frame.payload.count < 64 { verify(frame.payload) }
        }
    }

    // BlueZ 5.87 unit/test-gatt.c, and PureSwift's tests for the group of 128 bits.
    @Test(arguments: [
        ("02 0002", ATTPacket.exchangeMTURequest(512)), ("03 0002", .exchangeMTUResponse(512)),
        ("10 0100 ffff 0028", .readByGroupTypeRequest(.all, .primaryService)),
        ("11 06 0100 0400 0118", .readByGroupTypeResponse([.init(.init(1, 4), [0x01, 0x18])])),
        ("10 0900 ffff 0028", .readByGroupTypeRequest(.init(9, 0xFFFF), .primaryService)),
        ("01 10 0900 0a", .errorResponse(request: 0x10, handle: 9, .attributeNotFound)),
        ("08 0100 0800 0328", .readByTypeRequest(.init(1, 8), .characteristic)),
        ("09 07 0200 0203 0000 2a", .readByTypeResponse([.init(2, hex("02 0300 002a"))])),
        ("04 0400 0400", .findInformationRequest(.init(4, 4))),
        ("05 01 0400 0129", .findInformationResponse([.init(4, BluetoothUUID(0x2901))])),
        ("12 0900 0100", .writeRequest(9, [1, 0])), ("13", .writeResponse),
        ("1b 0800 aabb", .notification(8, [0xAA, 0xBB])), ("1d 0800 aa", .indication(8, [0xAA])), ("1e", .confirmation),
        (
            "11 14 2800 3000 c7a8d570e0234fb8e51172f9e24ff160",
            .readByGroupTypeResponse([.init(.init(0x28, 0x30), hex("c7a8d570e0234fb8e51172f9e24ff160"))])
        ),
        (
            "06 0100 ffff 0028 9ecadc240ee5a9e093f3a3b50100406e",
            .findByTypeValueRequest(.all, type: 0x2800, value: hex("9ecadc240ee5a9e093f3a3b50100406e"))
        ),
        ("07 0e00 1300", .findByTypeValueResponse([.init(14, 19)])), ("0a 0300", .readRequest(3)),
        ("0c 0300 1600", .readBlobRequest(3, offset: 22)), ("0d 01", .readBlobResponse([1])),
        ("16 0300 1200 01", .prepareWriteRequest(3, offset: 18, [1])),
        ("17 0300 1200 01", .prepareWriteResponse(3, offset: 18, [1])),
        ("18 01", .executeWriteRequest(commits: true)), ("18 00", .executeWriteRequest(commits: false)),
        ("19", .executeWriteResponse), ("52 0300 01", .writeCommand(3, [1])), ("0b", .readResponse([])),
    ])
    func `packets of other stacks`(bytes: String, packet: ATTPacket) throws {
        #expect(try ATTPacket.decode(hex(bytes).span.bytes) == packet)
        #expect(packet.bytes == hex(bytes))
        verify(hex(bytes))
    }

    @Test(arguments: [
        "", "18 02", "05 03 0400 0129", "05 01", "05 01 0400 01", "09 01 00", "09 02", "11 03 0000", "07",
    ])
    func `what has no meaning is refused`(bytes: String) {
        #expect(throws: DecodeError.self) { try ATTPacket.decode(hex(bytes).span.bytes) }
    }

    @Test func `UUIDs have one form`() {
        let long = BluetoothUUID(high: 0x0000_2A05_0000_1000, low: 0x8000_0080_5F9B_34FB)
        #expect(long == .serviceChanged)
        #expect(long.attributeBytes == [0x05, 0x2A])
        let uart = BluetoothUUID(high: 0x6E40_0001_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)
        #expect(uart.attributeBytes == hex("9ecadc240ee5a9e093f3a3b50100406e"))
        #expect(uart.shortForm == nil)
        // Assigned, but with more than 16 bits.
        #expect(BluetoothUUID(0x1234_5678).attributeBytes.count == 16)
    }

    @Test func `every packet is either for the client or for the server`() {
        let forClient: [UInt8] = [
            0x01, 0x03, 0x05, 0x07, 0x09, 0x0B, 0x0D, 0x0F, 0x11, 0x13, 0x17, 0x19, 0x1B, 0x1D, 0x21, 0x23,
        ]
        for byte: UInt8 in 0...255 { #expect(ATTOpcode.isForClient(byte) == forClient.contains(byte)) }
    }
}
