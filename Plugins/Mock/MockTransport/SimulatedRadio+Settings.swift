// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshWire

extension SimulatedRadio {
    mutating func setName(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        guard reader.remaining > 0 else { throw DecodeError(.truncated(missing: 1), offset: reader.offset) }
        name = WireText.prefix(of: reader.readText(), bytes: 31)
        return [SimulatedFrame.ok]
    }

    mutating func setPosition(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        let (north, east): (Int32, Int32) = (try reader.read(), try reader.read())
        guard (-90_000_000...90_000_000).contains(north), (-180_000_000...180_000_000).contains(east) else {
            return [SimulatedFrame.error(.illegalArgument)]
        }
        (latitude, longitude) = (north, east)
        return [SimulatedFrame.ok]
    }

    /// The limits are those of companion-protocol §1.5, SET_RADIO.
    mutating func setRadio(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        let (kilohertz, width): (UInt32, UInt32) = (try reader.read(), try reader.read())
        let (factor, rate): (UInt8, UInt8) = (try reader.read(), try reader.read())
        guard (150_000...2_500_000).contains(kilohertz), (7_000...500_000).contains(width), (5...12).contains(factor),
            (5...8).contains(rate)
        else { return [SimulatedFrame.error(.illegalArgument)] }
        (frequency, bandwidth, spreadingFactor, codingRate) = (kilohertz, width, factor, rate)
        return [SimulatedFrame.ok]
    }

    /// manual_add, then telemetry, location policy and multiple acknowledgements as far as they are given.
    mutating func setOtherParameters(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        otherParameters[3] = try reader.read()
        for index in [2, 1, 0] where reader.remaining > 0 { otherParameters[index] = try reader.read() }
        return [SimulatedFrame.ok]
    }

    /// Mode 0 with a key, mode 0 without one (back to the default), mode 1 for no scope at all.
    mutating func setFloodScope(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        let mode: UInt8 = try reader.read()
        switch mode {
        case 0 where reader.remaining >= 16: floodScope = .key(try reader.readBytes(16))
        case 0: floodScope = .standard
        case 1: floodScope = .none
        default: return [SimulatedFrame.error(.unsupported)]
        }
        return [SimulatedFrame.ok]
    }

    /// A name of 31 bytes and a key of 16; anything shorter clears it.
    mutating func setDefaultScope(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        guard reader.remaining >= 47 else {
            defaultScope = []
            return [SimulatedFrame.ok]
        }
        let (name, key) = (try reader.readBytes(31), try reader.readBytes(16))
        guard name[0] != 0, name[30] == 0 else { return [SimulatedFrame.error(.illegalArgument)] }
        defaultScope = name + key
        return [SimulatedFrame.ok]
    }
}
