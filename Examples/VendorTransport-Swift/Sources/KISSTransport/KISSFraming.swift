// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The framing of KISS (M. Chepponis, P. Karn: "The KISS TNC", 1987): each frame stands between two FENDs and begins with
/// a byte whose low half is a command, 0 for data, and whose high half is a port.
enum KISS {
    static let frameEnd: UInt8 = 0xC0
    static let escape: UInt8 = 0xDB
    static let escapedEnd: UInt8 = 0xDC
    static let escapedEscape: UInt8 = 0xDD
    /// Data, port 0.
    static let data: UInt8 = 0x00

    /// A data frame. The first FEND ends whatever noise came before.
    static func encode(_ payload: some Collection<UInt8>) -> [UInt8] {
        var bytes = [frameEnd, data]
        bytes.reserveCapacity(payload.count + 8)
        for byte in payload {
            switch byte {
            case frameEnd: bytes += [escape, escapedEnd]
            case escape: bytes += [escape, escapedEscape]
            default: bytes.append(byte)
            }
        }
        bytes.append(frameEnd)
        return bytes
    }
}

/// Finds data frames in a stream of bytes. Any bytes are taken: what is no frame is counted.
struct KISSDecoder {
    /// Longer frames are skipped.
    let limit: Int
    private var frame: [UInt8] = []
    private var isEscaped = false
    /// The frame that is being read is none: too long, or with an escape that means nothing.
    private var isBroken = false
    /// Bytes that belonged to no valid data frame.
    private(set) var skippedBytes = 0

    init(limit: Int) {
        self.limit = limit
    }

    mutating func bytesReceived(_ bytes: UnsafeRawBufferPointer, _ deliver: (ArraySlice<UInt8>) -> Void) {
        for byte in bytes {
            if byte == KISS.frameEnd {
                if !isBroken, !isEscaped, frame.count > 1, frame[0] == KISS.data {
                    deliver(frame[1...])
                } else {
                    skippedBytes += frame.count
                }
                frame.removeAll(keepingCapacity: true)
                isEscaped = false
                isBroken = false
            } else if isBroken {
                skippedBytes += 1
            } else {
                take(byte)
            }
        }
    }

    private mutating func take(_ byte: UInt8) {
        switch (isEscaped, byte) {
        case (false, KISS.escape): isEscaped = true
        case (false, _): frame.append(byte)
        case (true, KISS.escapedEnd): unescaped(KISS.frameEnd)
        case (true, KISS.escapedEscape): unescaped(KISS.escape)
        case (true, _): isBroken = true
        }
        if frame.count > limit + 1 { isBroken = true }
    }

    private mutating func unescaped(_ byte: UInt8) {
        frame.append(byte)
        isEscaped = false
    }
}
