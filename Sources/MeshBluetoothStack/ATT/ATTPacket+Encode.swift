// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

extension ATTPacket {
    /// As the payload of a frame. A packet of ``other(opcode:)`` is its opcode alone.
    public var bytes: [UInt8] {
        var writer = ByteWriter(capacity: 32)
        switch self {
        case .errorResponse(let request, let handle, let code):
            writer.write(.errorResponse)
            writer.write(request)
            writer.write(handle)
            writer.write(code.rawValue)
        case .exchangeMTURequest(let mtu): writer.write(.exchangeMTURequest, mtu)
        case .exchangeMTUResponse(let mtu): writer.write(.exchangeMTUResponse, mtu)
        case .findInformationRequest(let range): writer.write(.findInformationRequest, range)
        case .findInformationResponse(let found):
            let isShort = found.allSatisfy { $0.type.shortForm != nil }
            writer.write(.findInformationResponse)
            writer.write(isShort ? 1 as UInt8 : 2)
            for entry in found {
                writer.write(entry.handle)
                writer.write(contentsOf: isShort ? entry.type.attributeBytes : entry.type.longAttributeBytes)
            }
        case .findByTypeValueRequest(let range, let type, let value):
            writer.write(.findByTypeValueRequest, range)
            writer.write(type)
            writer.write(contentsOf: value)
        case .findByTypeValueResponse(let ranges):
            writer.write(.findByTypeValueResponse)
            for range in ranges { writer.write(range) }
        case .readByTypeRequest(let range, let type):
            writer.write(.readByTypeRequest, range)
            writer.write(contentsOf: type.attributeBytes)
        case .readByTypeResponse(let entries):
            writer.write(.readByTypeResponse)
            writer.write(UInt8(clamping: 2 + (entries.first?.value.count ?? 0)))
            for entry in entries {
                writer.write(entry.handle)
                writer.write(contentsOf: entry.value)
            }
        case .readRequest(let handle): writer.write(.readRequest, handle)
        case .readResponse(let value): writer.write(.readResponse, value)
        case .readBlobRequest(let handle, let offset):
            writer.write(.readBlobRequest, handle)
            writer.write(offset)
        case .readBlobResponse(let value): writer.write(.readBlobResponse, value)
        case .readByGroupTypeRequest(let range, let type):
            writer.write(.readByGroupTypeRequest, range)
            writer.write(contentsOf: type.attributeBytes)
        case .readByGroupTypeResponse(let groups):
            writer.write(.readByGroupTypeResponse)
            writer.write(UInt8(clamping: 4 + (groups.first?.value.count ?? 0)))
            for group in groups {
                writer.write(group.range)
                writer.write(contentsOf: group.value)
            }
        case .writeRequest(let handle, let value): writer.write(.writeRequest, handle, value)
        case .writeResponse: writer.write(.writeResponse)
        case .writeCommand(let handle, let value): writer.write(.writeCommand, handle, value)
        case .prepareWriteRequest(let handle, let offset, let value):
            writer.write(.prepareWriteRequest, handle)
            writer.write(offset)
            writer.write(contentsOf: value)
        case .prepareWriteResponse(let handle, let offset, let value):
            writer.write(.prepareWriteResponse, handle)
            writer.write(offset)
            writer.write(contentsOf: value)
        case .executeWriteRequest(let commits): writer.write(.executeWriteRequest, [commits ? 1 : 0])
        case .executeWriteResponse: writer.write(.executeWriteResponse)
        case .notification(let handle, let value): writer.write(.notification, handle, value)
        case .indication(let handle, let value): writer.write(.indication, handle, value)
        case .confirmation: writer.write(.confirmation)
        case .other(let opcode): writer.write(opcode)
        }
        return writer.bytes
    }
}

extension ByteWriter {
    fileprivate mutating func write(_ opcode: ATTOpcode) { write(opcode.rawValue) }

    fileprivate mutating func write(_ opcode: ATTOpcode, _ value: UInt16) {
        write(opcode.rawValue)
        write(value)
    }

    fileprivate mutating func write(_ opcode: ATTOpcode, _ value: [UInt8]) {
        write(opcode.rawValue)
        write(contentsOf: value)
    }

    fileprivate mutating func write(_ opcode: ATTOpcode, _ handle: UInt16, _ value: [UInt8]) {
        write(opcode, handle)
        write(contentsOf: value)
    }

    fileprivate mutating func write(_ opcode: ATTOpcode, _ range: ATTPacket.HandleRange) {
        write(opcode.rawValue)
        write(range)
    }

    fileprivate mutating func write(_ range: ATTPacket.HandleRange) {
        write(range.first)
        write(range.last)
    }
}
