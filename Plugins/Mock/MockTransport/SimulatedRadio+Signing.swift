// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshWire

extension SimulatedRadio {
    /// The buffer for what is to be signed (companion-protocol §1.5, SIGN_START).
    private static let signingLimit = 8_192

    mutating func signStart() -> [[UInt8]] {
        signing = []
        return [[0x13, 0] + SimulatedFrame.number(0, UInt32(Self.signingLimit))[1...]]
    }

    mutating func signData(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        guard reader.remaining > 0 else { throw DecodeError(.truncated(missing: 1), offset: reader.offset) }
        guard let buffer = signing else { return [SimulatedFrame.error(.badState)] }
        guard buffer.count + reader.remaining <= Self.signingLimit else { return [SimulatedFrame.error(.tableFull)] }
        signing = buffer + reader.readRest()
        return [SimulatedFrame.ok]
    }

    mutating func signFinish() -> [[UInt8]] {
        guard let buffer = signing else { return [SimulatedFrame.error(.badState)] }
        signing = nil
        return [[0x14] + SimulatedHash.bytes(64, of: privateKey + buffer)]
    }

    /// A key of 64 bytes; the public key follows from it.
    mutating func importPrivateKey(_ reader: inout ByteReader) throws(DecodeError) -> [[UInt8]] {
        privateKey = try reader.readBytes(64)
        publicKey = SimulatedHash.bytes(32, of: privateKey)
        return [SimulatedFrame.ok]
    }
}
