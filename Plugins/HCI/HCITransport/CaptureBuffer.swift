// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack

/// Records that wait to be written to a capture.
///
/// Bounded: a disk that is too slow must not cost memory, nor hold a packet up. What does not fit is left out (the newest),
/// and counted in the records that follow.
struct CaptureBuffer {
    let limit: Int
    private(set) var bytes: [UInt8] = []
    /// How many packets were left out, in all.
    private(set) var drops: UInt32 = 0

    init(limit: Int) {
        self.limit = limit
    }

    var isEmpty: Bool { bytes.isEmpty }

    /// `time` is in microseconds since 1970.
    mutating func append(_ packet: HCIPacket, isFromController: Bool, time: Int64) {
        let record = BTSnoopFile.Record(
            kind: packet.kind, isFromController: isFromController, time: time, packet: packet.bytes, drops: drops
        ).bytes
        guard bytes.count + record.count <= limit else {
            drops &+= 1
            return
        }
        bytes += record
    }

    /// Whole records.
    mutating func take() -> [UInt8] {
        defer { bytes = [] }
        return bytes
    }
}
