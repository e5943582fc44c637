// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import MeshWire

/// What must hold for any bytes that are said to be sensor readings: rows, and an error at an offset inside of the bytes
/// if those after them are none. Rows are written as they were, and read back from their JSON.
enum LPPCheck {
    static func run(_ input: UnsafeRawBufferPointer) {
        let bytes = Data(input)
        let (readings, error) = CayenneLPP.decodeStart(bytes)
        guard let written = try? CayenneLPP.encode(readings) else { preconditionFailure("cannot be written") }
        precondition(bytes.starts(with: written), "other bytes")
        if let error {
            precondition((written.count...bytes.count).contains(error.offset), "an offset outside of the rest")
        } else {
            precondition(written.count == bytes.count || bytes[written.count] == 0, "rows that were passed over")
        }
        precondition((try? CayenneLPP.decode(bytes)) == (error == nil ? readings : nil))
        for reading in readings { precondition(reading.values.allSatisfy(\.isFinite), "no number") }

        guard case .array(let rows) = CayenneLPP.json(bytes) else { preconditionFailure("not an array") }
        precondition(rows.count == readings.count + (error == nil ? 0 : 1))
        let read = try? CayenneLPP.readings(json: .array(Array(rows.prefix(readings.count))))
        precondition(read == readings, "other JSON")
    }
}
