// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import Testing

struct WireValueTests {
    // Golden bytes: companion-protocol §3.4, E1 to E3 (MeshCore One v1.3.0).
    @Test func `E1: hops and hash sizes in one byte`() {
        for (byte, size, hops) in [(0x05, 1, 5), (0x43, 2, 3), (0x84, 3, 4)] as [(UInt8, Int, Int)] {
            let path = PathByte(rawValue: byte)
            #expect(path.hashSize == size && path.hops == hops && path.pathLength == size * hops)
            #expect(PathByte(hashSize: size, hops: hops) == path)
            #expect(path.isValidInPacket)
        }
    }

    @Test func `E2: the reserved size has no meaning, and 0xFF is no path`() {
        for byte in [0xC1, 0xFF] as [UInt8] {
            let path = PathByte(rawValue: byte)
            #expect(path.hashSize == nil && path.hops == nil && path.pathLength == nil && !path.isValidInPacket)
        }
        #expect(PathByte(rawValue: 0xFF) == .none)
        #expect(PacketPath(byte: .none, hashes: Data()) == PacketPath.none)
        #expect(PacketPath(byte: PathByte(rawValue: 0xC1), hashes: Data([1, 2, 3, 4])) == nil)
        #expect(PathByte(hashSize: 4, hops: 1) == nil && PathByte(hashSize: 1, hops: 64) == nil)
    }

    @Test func `E3: what is too long for a packet can be written, not sent`() {
        #expect(PathByte(hashSize: 2, hops: 10)?.rawValue == 0x4A)
        let long = PathByte(hashSize: 3, hops: 63)
        #expect(long?.rawValue == 0xBF)
        #expect(long?.isValidInPacket == false)
        #expect(PacketPath(hashSize: 3, hashes: Data(count: 189)) == nil)
        #expect(PacketPath(hashSize: 2, hashes: Data(count: 64))?.hops.count == 32)
        #expect(PacketPath(hashSize: 2, hashes: Data(count: 65)) == nil)
        #expect(PacketPath(hashSize: 1, hashes: Data(count: 64)) == nil)
    }

    @Test func `a path's hops in order, also from the middle of other bytes`() {
        let all = Data([9, 9, 0x3F, 0xA0, 0x02, 0x86, 0x0C, 0xCA, 9])
        let path = PacketPath(hashSize: 3, hashes: all[2..<8])
        #expect(path?.description == "3fa002,860cca")
        #expect(PacketPath.none.description == "none")
    }

    @Test func `keys in hexadecimal`() throws {
        let key = try #require(PublicKey(Data(0..<32)))
        #expect(key.description == "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
        #expect(PublicKey(hex: key.description.uppercased()) == key)
        #expect(key.data == Data(0..<32))
        #expect(key.prefix.description == "000102030405")
        #expect(key.prefix == KeyPrefix(Data(0..<6)))
        #expect(PublicKey(Data(0..<31)) == nil && KeyPrefix(Data(0..<7)) == nil)
        #expect(KeyPrefix(hex: "00010203040") == nil && KeyPrefix(hex: "0001020304zz") == nil)
        #expect(KeyPrefix(hex: "") == nil)
    }

    @Test func `coordinates are signed`() {
        let place = Coordinates(latitude: 37.7749, longitude: -122.4194)
        #expect(place?.latitudeMicrodegrees == 37_774_900 && place?.longitudeMicrodegrees == -122_419_400)
        #expect(place?.longitude == -122.4194)
        #expect(Coordinates(latitude: 90.1, longitude: 0) == nil)
        #expect(Coordinates(latitude: .nan, longitude: 0) == nil)
    }

    @Test func `signal strength in quarters of a dB`() {
        #expect(SignalToNoise(quarters: -9).decibels == -2.25)
        #expect(SignalToNoise(quarters: -9) < SignalToNoise(quarters: 0))
    }
}
