// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

extension ATTPacket {
    /// Reads the payload of a frame on channel 4. Lists without entries, which servers must not send, are refused.
    public static func decode(_ bytes: RawSpan) throws(DecodeError) -> ATTPacket {
        try ByteReader.decode(bytes) { (reader) throws(DecodeError) in
            let byte = try reader.read(UInt8.self)
            guard let opcode = ATTOpcode(rawValue: byte) else { return .other(opcode: byte) }
            let packet = try content(opcode, &reader)
            try reader.expectEnd()
            return packet
        }
    }

    private static func content(_ opcode: ATTOpcode, _ reader: inout ByteReader) throws(DecodeError) -> ATTPacket {
        switch opcode {
        case .errorResponse:
            .errorResponse(
                request: try reader.read(), handle: try reader.read(), ATTErrorCode(rawValue: try reader.read()))
        case .exchangeMTURequest: .exchangeMTURequest(try reader.read())
        case .exchangeMTUResponse: .exchangeMTUResponse(try reader.read())
        case .findInformationRequest: .findInformationRequest(try reader.readRange())
        case .findInformationResponse: .findInformationResponse(try information(&reader))
        case .findByTypeValueRequest:
            .findByTypeValueRequest(try reader.readRange(), type: try reader.read(), value: reader.readRest())
        case .findByTypeValueResponse:
            .findByTypeValueResponse(
                try reader.readList(entry: 4) { (reader) throws(DecodeError) in try reader.readRange() })
        case .readByTypeRequest: .readByTypeRequest(try reader.readRange(), try reader.readLastUUID())
        case .readByTypeResponse: .readByTypeResponse(try handleValues(&reader))
        case .readRequest: .readRequest(try reader.read())
        case .readResponse: .readResponse(reader.readRest())
        case .readBlobRequest: .readBlobRequest(try reader.read(), offset: try reader.read())
        case .readBlobResponse: .readBlobResponse(reader.readRest())
        case .readByGroupTypeRequest: .readByGroupTypeRequest(try reader.readRange(), try reader.readLastUUID())
        case .readByGroupTypeResponse: .readByGroupTypeResponse(try groups(&reader))
        case .writeRequest: .writeRequest(try reader.read(), reader.readRest())
        case .writeResponse: .writeResponse
        case .writeCommand: .writeCommand(try reader.read(), reader.readRest())
        case .prepareWriteRequest:
            .prepareWriteRequest(try reader.read(), offset: try reader.read(), reader.readRest())
        case .prepareWriteResponse:
            .prepareWriteResponse(try reader.read(), offset: try reader.read(), reader.readRest())
        case .executeWriteRequest: .executeWriteRequest(commits: try executeFlag(&reader))
        case .executeWriteResponse: .executeWriteResponse
        case .notification: .notification(try reader.read(), reader.readRest())
        case .indication: .indication(try reader.read(), reader.readRest())
        case .confirmation: .confirmation
        }
    }

    private static func executeFlag(_ reader: inout ByteReader) throws(DecodeError) -> Bool {
        let start = reader.offset
        let flag = try reader.read(UInt8.self)
        guard flag <= 1 else { throw DecodeError(.invalidField("flags"), offset: start) }
        return flag == 1
    }

    private static func information(_ reader: inout ByteReader) throws(DecodeError) -> [TypedHandle] {
        let start = reader.offset
        let format = try reader.read(UInt8.self)
        guard format == 1 || format == 2 else { throw DecodeError(.invalidField("format"), offset: start) }
        let size = format == 1 ? 2 : 16
        return try reader.readList(entry: 2 + size) { (reader) throws(DecodeError) in
            TypedHandle(try reader.read(), try reader.readUUID(byteCount: size))
        }
    }

    private static func handleValues(_ reader: inout ByteReader) throws(DecodeError) -> [HandleValue] {
        let length = try reader.readEntryLength(minimum: 2)
        return try reader.readList(entry: length) { (reader) throws(DecodeError) in
            HandleValue(try reader.read(), try reader.readBytes(length - 2))
        }
    }

    private static func groups(_ reader: inout ByteReader) throws(DecodeError) -> [GroupValue] {
        let length = try reader.readEntryLength(minimum: 4)
        return try reader.readList(entry: length) { (reader) throws(DecodeError) in
            GroupValue(try reader.readRange(), try reader.readBytes(length - 4))
        }
    }
}

extension ByteReader {
    fileprivate mutating func readRange() throws(DecodeError) -> ATTPacket.HandleRange {
        ATTPacket.HandleRange(try read(), try read())
    }

    /// A UUID that goes up to the end.
    fileprivate mutating func readLastUUID() throws(DecodeError) -> BluetoothUUID {
        try readUUID(byteCount: remaining)
    }

    fileprivate mutating func readEntryLength(minimum: Int) throws(DecodeError) -> Int {
        let start = offset
        let length = Int(try read(UInt8.self))
        guard length >= minimum else { throw DecodeError(.invalidField("length"), offset: start) }
        return length
    }

    /// Entries of one length up to the end: at least one, and all of them whole.
    fileprivate mutating func readList<Entry>(
        entry length: Int, _ read: (inout ByteReader) throws(DecodeError) -> Entry
    ) throws(DecodeError) -> [Entry] {
        guard remaining > 0, remaining.isMultiple(of: length) else {
            throw DecodeError(.truncated(missing: length - remaining % length), offset: offset)
        }
        var entries: [Entry] = []
        entries.reserveCapacity(remaining / length)
        while remaining > 0 { entries.append(try read(&self)) }
        return entries
    }
}
