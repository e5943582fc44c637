// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// What must hold for any packets on the socket of a module's process: a message that is written as it was read, or an error
/// at an offset inside; documents no longer than they may be; sightings that are read back from what they are written as.
/// The input is packets, each with its length in front, in two bytes.
enum ModuleMessageCheck {
    static func run(_ input: UnsafeRawBufferPointer) {
        for sender in ModuleMessage.Sender.allCases {
            var assembler = ModuleDocumentAssembler()
            var rest = input[...]
            while rest.count >= 2 {
                let length = Int(rest[rest.startIndex]) | Int(rest[rest.startIndex + 1]) << 8
                rest = rest.dropFirst(2)
                check(UnsafeRawBufferPointer(rebasing: rest.prefix(length)), sender, &assembler)
                rest = rest.dropFirst(length)
            }
        }
    }

    private static func check(
        _ packet: UnsafeRawBufferPointer, _ sender: ModuleMessage.Sender, _ assembler: inout ModuleDocumentAssembler
    ) {
        let message: ModuleMessage
        do throws(DecodeError) {
            message = try ModuleMessage(decoding: packet, from: sender)
        } catch {
            precondition((0...packet.count).contains(error.offset), "an offset outside of the packet")
            return
        }
        let payload = UnsafeRawBufferPointer(rebasing: packet.dropFirst(ModuleMessage.headLength))
        precondition(message.kind.isSent(by: sender), "from the wrong side")
        precondition(message.encoded(Array(payload)) == Array(packet), "other bytes")
        if case .document(let document) = assembler.take(message, payload) {
            precondition(document.count <= ModuleMessage.maximumDocument, "too long a document")
        }
        var frames = ModuleFrames()
        let areFrames =
            (try? ModuleFrames.forEach(in: payload) { precondition(frames.append($0), "a frame that is none") }) != nil
        precondition(!areFrames || frames.bytes == Array(payload), "other frames")
        if let sighting = try? ModuleSighting(decoding: payload) {
            let again = sighting.encoded.withUnsafeBytes { try? ModuleSighting(decoding: $0) }
            precondition(again?.address == Array(sighting.address.prefix(4_096)), "another address")
            precondition(again?.name == Array(sighting.name.prefix(4_096)), "another name")
        }
    }
}
