// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshWire

/// What must hold for any bytes from a controller: first as a stream of H4, then each packet of it as an event. What
/// advertisements say is the matter of the fuzzer `Advertising`.
enum HCICheck {
    static func run(_ input: UnsafeRawBufferPointer) {
        let whole = Run(input, width: input.count)
        let single = Run(input, width: 1)
        let cut = Run(input, width: 7)
        precondition(whole.packets == single.packets && whole.packets == cut.packets, "cut otherwise gives others")
        precondition(whole.synchrony == single.synchrony && whole.synchrony == cut.synchrony, "synchrony differs")
        for packet in whole.packets {
            precondition(packet.count <= 4 + 65_535, "a packet beyond the limits")
            decode(packet)
        }
        decode(Array(input))
        _ = try? HCICommand.decode(input.bytes)
    }

    private static func decode(_ packet: [UInt8]) {
        do {
            let event = try HCIEvent.decode(packet.span.bytes)
            guard case .advertisingReports(let reports) = event else { return }
            let data = reports.map(\.data.count).reduce(0, +)
            precondition(data <= packet.count, "more data than there is room for")
        } catch {
            precondition((0...packet.count).contains(error.offset), "an offset outside")
        }
    }

    private struct Run {
        var packets: [[UInt8]] = []
        var synchrony = H4Decoder.Synchrony.kept

        init(_ input: UnsafeRawBufferPointer, width: Int) {
            var decoder = H4Decoder()
            for start in stride(from: 0, to: input.count, by: max(1, width)) {
                let piece = input.bytes.extracting(start..<min(start + max(1, width), input.count))
                synchrony = decoder.bytesReceived(piece) { _, packet in
                    packet.withUnsafeBytes { packets.append(Array($0)) }
                }
            }
        }
    }
}
