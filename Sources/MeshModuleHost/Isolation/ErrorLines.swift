// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// The lines of a program's standard error as log records. Pure.
///
/// A line may begin with its level as `<4>` (sd-daemon(3)); without one it is of level `info`. Longer lines are cut.
struct ErrorLines {
    private static let maximumLength = 1_024

    private var partial: [UInt8] = []
    /// The line has been cut: what comes before its end is dropped.
    private var isCut = false

    /// The records that these bytes complete.
    mutating func take(_ bytes: some Sequence<UInt8>) -> [(level: LogLevel, text: String)] {
        var records: [(level: LogLevel, text: String)] = []
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                if let record = finish() { records.append(record) }
            } else if partial.count < Self.maximumLength {
                partial.append(byte)
            } else {
                isCut = true
            }
        }
        return records
    }

    /// What stands before the end of the stream without a line break.
    mutating func finish() -> (level: LogLevel, text: String)? {
        defer {
            partial.removeAll(keepingCapacity: true)
            isCut = false
        }
        var level = LogLevel.info
        var line = partial[...]
        if line.count >= 3, line[0] == UInt8(ascii: "<"), line[2] == UInt8(ascii: ">"),
            (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(line[1])
        {
            level = LogLevel(abiValue: Int32(line[1] - UInt8(ascii: "0")))
            line = line.dropFirst(3)
        }
        guard line.contains(where: { $0 > 0x20 }) else { return nil }
        return (level, String(decoding: line, as: UTF8.self).singleLine + (isCut ? "…" : ""))
    }
}
