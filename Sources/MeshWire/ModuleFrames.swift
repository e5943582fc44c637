// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The payload of ``ModuleMessage/Kind/frames``: several frames of one link, each behind its length, 16 bits, little-endian.
public struct ModuleFrames: Sendable {
    /// The payload so far.
    public private(set) var bytes: [UInt8] = []
    /// How many frames are in it.
    public private(set) var count = 0

    public init() {}

    /// Puts one more frame at the end. False, and nothing is done, where there is no room.
    public mutating func append(_ frame: some Collection<UInt8>) -> Bool {
        let length = frame.count
        guard (1...ModuleMessage.maximumFrame).contains(length),
            bytes.count + 2 + length <= ModuleMessage.maximumLength - ModuleMessage.headLength
        else { return false }
        bytes.append(UInt8(truncatingIfNeeded: length))
        bytes.append(UInt8(truncatingIfNeeded: length >> 8))
        bytes.append(contentsOf: frame)
        count += 1
        return true
    }

    /// Hands each frame of a payload to `body`, for the time of the call.
    public static func forEach(
        in payload: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void
    ) throws(DecodeError) {
        var reader = ByteReader(payload)
        while reader.remaining > 0 {
            let start = reader.offset
            let length = Int(try reader.read(UInt16.self))
            guard (1...ModuleMessage.maximumFrame).contains(length) else {
                throw DecodeError(.invalidField("length"), offset: start)
            }
            body(try reader.readBuffer(length))
        }
    }
}
