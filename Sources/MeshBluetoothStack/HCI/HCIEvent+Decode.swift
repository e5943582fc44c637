// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

extension HCIEvent {
    /// Reads an event packet without H4's indicator.
    public static func decode(_ packet: RawSpan) throws(DecodeError) -> HCIEvent {
        try ByteReader.decode(packet) { (reader) throws(DecodeError) in
            let code = try reader.read(UInt8.self)
            let length = Int(try reader.read(UInt8.self))
            guard reader.remaining >= length else {
                throw DecodeError(.truncated(missing: length - reader.remaining), offset: reader.offset)
            }
            guard reader.remaining == length else {
                throw DecodeError(.trailing(count: reader.remaining - length), offset: 2 + length)
            }
            return try event(code, &reader)
        }
    }

    private static func event(_ code: UInt8, _ reader: inout ByteReader) throws(DecodeError) -> HCIEvent {
        switch code {
        case 0x05:
            return .disconnectionComplete(
                try reader.readStatus(), try reader.readHandle(), reason: try reader.readStatus())
        case 0x08, 0x59:
            // The second version adds the key's size, which SMP has negotiated already.
            return .encryptionChange(
                try reader.readStatus(), try reader.readHandle(), isEncrypted: try reader.read(UInt8.self) != 0)
        case 0x0C:
            return .remoteVersion(
                try reader.readStatus(), try reader.readHandle(),
                RemoteVersion(version: try reader.read(), company: try reader.read(), subversion: try reader.read()))
        case 0x0E:
            let allowance = try reader.read(UInt8.self)
            let opcode = HCIOpcode(rawValue: try reader.read())
            return .commandComplete(opcode, parameters: reader.readRest(), allowance: allowance)
        case 0x0F:
            let status = try reader.readStatus()
            let allowance = try reader.read(UInt8.self)
            return .commandStatus(HCIOpcode(rawValue: try reader.read()), status, allowance: allowance)
        case 0x10: return .hardwareError(try reader.read())
        case 0x13: return .completedPackets(try completedPackets(&reader))
        case 0x1A: return .dataBufferOverflow
        case 0x30: return .encryptionKeyRefreshed(try reader.readStatus(), try reader.readHandle())
        case 0x3E: return try leEvent(try reader.read(), &reader)
        default: return .other(code: code, subevent: nil)
        }
    }

    private static func leEvent(_ subevent: UInt8, _ reader: inout ByteReader) throws(DecodeError) -> HCIEvent {
        switch subevent {
        case 0x01: return .connectionComplete(try connectionComplete(&reader, isEnhanced: false))
        // The second version of the enhanced form adds fields of periodic advertising behind the first's.
        case 0x0A, 0x29: return .connectionComplete(try connectionComplete(&reader, isEnhanced: true))
        case 0x02: return .advertisingReports(try AdvertisingReport.readLegacy(&reader))
        case 0x0B: return .advertisingReports(try AdvertisingReport.readDirected(&reader))
        case 0x0D: return .advertisingReports(try AdvertisingReport.readExtended(&reader))
        case 0x03:
            return .connectionUpdated(
                try reader.readStatus(), try reader.readHandle(), try currentParameters(&reader))
        case 0x04:
            return .remoteFeatures(
                try reader.readStatus(), try reader.readHandle(), LEFeatures(rawValue: try reader.read()))
        case 0x05:
            return .longTermKeyRequested(
                try reader.readHandle(), random: try reader.read(), diversifier: try reader.read())
        case 0x06:
            return .parametersRequested(
                try reader.readHandle(),
                ConnectionParameters(
                    minimumInterval: try reader.read(), maximumInterval: try reader.read(), latency: try reader.read(),
                    supervisionTimeout: try reader.read()))
        case 0x07:
            return .dataLengthChanged(
                try reader.readHandle(),
                transmit: DataLength(octets: try reader.read(), microseconds: try reader.read()),
                receive: DataLength(octets: try reader.read(), microseconds: try reader.read()))
        case 0x0C:
            return .phyUpdated(
                try reader.readStatus(), try reader.readHandle(), transmit: try reader.read(),
                receive: try reader.read())
        case 0x12:
            return .advertisingSetTerminated(
                try reader.readStatus(), set: try reader.read(), try reader.readHandle())
        default: return .other(code: 0x3E, subevent: subevent)
        }
    }

    private static func completedPackets(_ reader: inout ByteReader) throws(DecodeError) -> [CompletedPackets] {
        // One handle with its count after the other, though the specification's table lists two arrays (§7.7.19 and
        // §5.2: array parameters are sent interleaved).
        var result: [CompletedPackets] = []
        for _ in 0..<(try reader.read(UInt8.self)) {
            result.append(CompletedPackets(handle: try reader.readHandle(), count: try reader.read()))
        }
        return result
    }

    private static func connectionComplete(
        _ reader: inout ByteReader, isEnhanced: Bool
    ) throws(DecodeError) -> ConnectionComplete {
        let status = try reader.readStatus()
        let handle = try reader.readHandle()
        let role = LinkRole(rawValue: try reader.read(UInt8.self) & 1) ?? .central
        let peer: (address: DeviceAddress, isResolved: Bool)
        if status == .success {
            peer = try reader.readKindAndAddress()
        } else {
            // All else is unspecified in an event of failure, the address's kind too.
            try reader.skip(1)
            peer = (DeviceAddress(try reader.readAddressValue(), .public), false)
        }
        var local: UInt64 = 0
        var remote: UInt64 = 0
        if isEnhanced {
            local = try reader.readAddressValue()
            remote = try reader.readAddressValue()
        }
        return ConnectionComplete(
            status: status, handle: handle, role: role, peer: peer.address, isPeerResolved: peer.isResolved,
            localPrivateAddress: local == 0 ? nil : DeviceAddress(local, .random),
            peerPrivateAddress: remote == 0 ? nil : DeviceAddress(remote, .random),
            parameters: try currentParameters(&reader))
    }

    private static func currentParameters(_ reader: inout ByteReader) throws(DecodeError) -> CurrentParameters {
        CurrentParameters(
            interval: try reader.read(), latency: try reader.read(), supervisionTimeout: try reader.read())
    }
}

extension ByteReader {
    mutating func readStatus() throws(DecodeError) -> HCIStatus { HCIStatus(rawValue: try read()) }
}
