// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Puts payloads into frames; it never makes one that a peer could misread.
public struct CompanionFrameEncoder: Sendable {
    /// Why a payload cannot be framed.
    public enum Failure: Error, Sendable, Hashable {
        /// Firmware ignores empty frames, so an answer would never come.
        case empty
        /// In bytes.
        case tooLong(length: Int, ceiling: Int)
    }

    public let marker: CompanionFraming.Marker
    /// The largest payload, in bytes.
    public let ceiling: Int

    public init(marker: CompanionFraming.Marker, ceiling: Int = CompanionFraming.maximumPayload) {
        precondition((1...CompanionFraming.largestCeiling).contains(ceiling))
        self.marker = marker
        self.ceiling = ceiling
    }

    /// Appends the frame of `payload` to `output`.
    public func encode(_ payload: RawSpan, into output: inout [UInt8]) throws(Failure) {
        let length = payload.byteCount
        if length == 0 { throw .empty }
        if length > ceiling { throw .tooLong(length: length, ceiling: ceiling) }
        output.append(marker.rawValue)
        output.append(UInt8(truncatingIfNeeded: length))
        output.append(UInt8(truncatingIfNeeded: length >> 8))
        payload.withUnsafeBytes { output.append(contentsOf: $0) }
    }

    /// The frame of `payload`.
    public func encode(_ payload: RawSpan) throws(Failure) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(CompanionFraming.headerLength + payload.byteCount)
        try encode(payload, into: &output)
        return output
    }
}
