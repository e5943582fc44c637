// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire
import Testing

struct CompanionLayoutTests {
    private func isPlausible(_ bytes: [UInt8]) -> Bool { CompanionLayout.isPlausible(bytes.span.bytes) }

    /// The rows of companion-protocol §3.3, composed from the firmware's layouts or taken from MeshCore One.
    @Test(arguments: [
        "05010a16a72a0122f898a608e157ee6016bb05c26be809d654a3e810f7ede26f19dfafe4dc47d9028eb0cbff0000000095440d0090d003000b"
            + "05435436325f66646c",
        "0c8000", "0cfc101600000064000000", "0980009265", "0102", "00", "0a", "0601deadbeef88130000",
        "070123456789ab02008000926548656c6c6f", "10f800000123456789abff008000926548656c6c6f",
        "101400000123456789ab420280009265deadbeef4869", "0800030080009265426f623a204869",
        "1114000001ff0080009265426f623a204869", "82deadbeef", "82deadbeeff4010000", "8428abff01020304",
        "8500010203040506", "8501aabbccddeeff605d5a6a0302", "8600aabbccddeeff", "8820ab1500aabbcc", "83", "0005000000",
    ])
    func `frames of real radios are plausible`(frame: String) {
        #expect(isPlausible(hex(frame)))
    }

    @Test func `a frame shorter than its layout is not`() {
        #expect(!isPlausible([]))
        #expect(!isPlausible(hex("06 01 deadbeef 8813")))
        #expect(!isPlausible([0x03] + Array(repeating: 0, count: 146)))
    }

    @Test func `a frame of tomorrow is plausible`() {
        #expect(isPlausible(hex("2a 01 02 03")))
        #expect(isPlausible(hex("09 80009265 01020304")))
        #expect(isPlausible(hex("2a 3e 3e 0000 3e 0500 55")))
    }

    @Test func `a frame that holds what looks like another one is whole`() {
        // A received packet, a text: what they hold comes from the air.
        #expect(isPlausible(hex("88 20ab 3e 0100 00 3e 0100 0a")))
        #expect(isPlausible(hex("07 0123456789ab 02 00 80009265 3e 0500 0980009265")))
    }

    @Test func `a reply that somebody sends through the air in a packet is never a frame of its own`() {
        let configuration = CompanionFrameDecoder.Configuration(
            marker: .fromRadio, isPlausible: { CompanionLayout.isPlausible($0) })
        let injected = hex("88 20ab 3e 0100 00 3e 0500 0900000000 3e 0200 0101")
        let stream = [0x3E, UInt8(injected.count), 0] + injected + hex("3e0100 0a")
        for offset in 0...stream.count {
            let sink = FrameSink(configuration)
            sink.receive(Array(stream[..<offset]))
            sink.receive(Array(stream[offset...]))
            #expect(sink.frames == [injected, hex("0a")], "split at \(offset)")
        }
    }

    @Test func `a decoder with the check finds the frame behind one that is too short for its code`() {
        let sink = FrameSink(.init(marker: .fromRadio, isPlausible: { CompanionLayout.isPlausible($0) }))
        let stream = hex("3e0300 098000 3e0500 0980009265 3e0100 0a")
        #expect(sink.receive(stream) == [hex("0980009265"), hex("0a")])
        #expect(sink.counters.skippedBytes == 6)
    }
}
