// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshWire

/// One entry of the simulated radio's contact table.
struct SimulatedContact {
    /// Node types of companion-protocol §1.6, CONTACT.
    enum Kind: UInt8 {
        case chat = 1
        case repeater = 2
        case roomServer = 3
        case sensor = 4
    }

    /// CONTACT with its code, in bytes (companion-protocol §1.6).
    static let frameLength = 148
    private static let pathLength = 64
    /// What of a name is kept, in bytes: a field of 32 with its end.
    private static let longestName = 31

    var publicKey: [UInt8]
    /// A raw value, as a client may store what it likes.
    var type: UInt8
    var flags: UInt8 = 0
    var name: String
    /// The path byte (companion-protocol §1.8); FF: no path known, messages are flooded.
    var pathByte: UInt8
    /// 64 bytes, of which the path byte says how many count.
    var path: [UInt8]
    var lastAdvert: UInt32
    /// In millionths of a degree.
    var latitude: Int32
    var longitude: Int32
    var lastModified: UInt32

    var kind: Kind? { Kind(rawValue: type) }
    var prefix: [UInt8] { Array(publicKey.prefix(6)) }

    /// `path` is nil where none is known; one byte per hop.
    init(
        publicKey: [UInt8], kind: Kind, name: String, path: [UInt8]?, lastAdvert: UInt32, latitude: Int32,
        longitude: Int32, lastModified: UInt32
    ) {
        self.publicKey = publicKey
        type = kind.rawValue
        self.name = name
        pathByte = path.map { UInt8($0.count) } ?? 0xFF
        self.path = (path ?? []) + Array(repeating: 0, count: Self.pathLength - (path?.count ?? 0))
        self.lastAdvert = lastAdvert
        self.latitude = latitude
        self.longitude = longitude
        self.lastModified = lastModified
    }

    /// Reads ADD_UPDATE_CONTACT behind its code; `now` stands for a missing modification time.
    init(reading reader: inout ByteReader, now: UInt32) throws(DecodeError) {
        publicKey = try reader.readBytes(32)
        type = try reader.read()
        flags = try reader.read()
        pathByte = try reader.read()
        path = try reader.readBytes(Self.pathLength)
        name = try reader.readFixedText(32)
        lastAdvert = try reader.read()
        latitude = reader.remaining >= 8 ? try reader.read() : 0
        longitude = reader.remaining >= 4 ? try reader.read() : 0
        lastModified = reader.remaining >= 4 ? try reader.read() : now
    }

    /// The layout of CONTACT and NEW_ADVERT, behind `code`.
    func frame(code: UInt8) -> [UInt8] {
        var writer = ByteWriter(capacity: Self.frameLength)
        writer.write(code)
        writer.write(contentsOf: publicKey)
        writer.write(type)
        writer.write(flags)
        writer.write(pathByte)
        writer.write(contentsOf: path)
        writer.writeFixedText(name, length: 32)
        writer.write(lastAdvert)
        writer.write(latitude)
        writer.write(longitude)
        writer.write(lastModified)
        return writer.bytes
    }

    // MARK: Adverts

    /// Header, path length, key, time and signature, and one byte more (companion-protocol §1.5, IMPORT_CONTACT).
    static let shortestAdvert = 98

    /// An ADVERT packet by flood, without hops (firmware src/Mesh.cpp, `createAdvert`).
    var advert: [UInt8] {
        var writer = ByteWriter(capacity: 160)
        writer.write(contentsOf: [0x11, 0x00])
        writer.write(contentsOf: publicKey)
        writer.write(lastAdvert)
        writer.write(contentsOf: SimulatedHash.bytes(64, of: publicKey + Array(name.utf8)))
        writer.write(0x90 | type)
        writer.write(latitude)
        writer.write(longitude)
        writer.writeText(name, limit: Self.longestName)
        return writer.bytes
    }

    /// Reads such a packet; nil for anything else.
    init?(advert reader: inout ByteReader, now: UInt32) {
        let fields: (key: [UInt8], time: UInt32, flags: UInt8, latitude: Int32, longitude: Int32, name: String)
        do throws(DecodeError) {
            let (header, hops): (UInt8, UInt8) = (try reader.read(), try reader.read())
            guard header >> 2 & 0x0F == 4 else { return nil }
            try reader.skip(Int(hops & 0x3F) * Int(hops >> 6 + 1))
            let (key, time): ([UInt8], UInt32) = (try reader.readBytes(32), try reader.read())
            try reader.skip(64)
            let flags: UInt8 = try reader.read()
            let hasPlace = flags & 0x10 != 0
            fields = (
                key, time, flags, hasPlace ? try reader.read() : 0, hasPlace ? try reader.read() : 0,
                flags & 0x80 != 0 ? try reader.readFixedText(min(reader.remaining, Self.longestName)) : ""
            )
        } catch {
            return nil
        }
        guard let kind = Kind(rawValue: fields.flags & 0x0F) else { return nil }
        self.init(
            publicKey: fields.key, kind: kind, name: fields.name, path: nil, lastAdvert: fields.time,
            latitude: fields.latitude, longitude: fields.longitude, lastModified: now)
    }
}
