// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// A packet of the attribute protocol (Core Specification 5.4, Vol 3 Part F §3.4).
public enum ATTPacket: Sendable, Hashable {
    case errorResponse(request: UInt8, handle: UInt16, ATTErrorCode)
    case exchangeMTURequest(UInt16)
    case exchangeMTUResponse(UInt16)
    case findInformationRequest(HandleRange)
    case findInformationResponse([TypedHandle])
    case findByTypeValueRequest(HandleRange, type: UInt16, value: [UInt8])
    case findByTypeValueResponse([HandleRange])
    case readByTypeRequest(HandleRange, BluetoothUUID)
    case readByTypeResponse([HandleValue])
    case readRequest(UInt16)
    case readResponse([UInt8])
    case readBlobRequest(UInt16, offset: UInt16)
    case readBlobResponse([UInt8])
    case readByGroupTypeRequest(HandleRange, BluetoothUUID)
    case readByGroupTypeResponse([GroupValue])
    case writeRequest(UInt16, [UInt8])
    case writeResponse
    case writeCommand(UInt16, [UInt8])
    case prepareWriteRequest(UInt16, offset: UInt16, [UInt8])
    case prepareWriteResponse(UInt16, offset: UInt16, [UInt8])
    /// Writes what was prepared, or forgets it.
    case executeWriteRequest(commits: Bool)
    case executeWriteResponse
    case notification(UInt16, [UInt8])
    case indication(UInt16, [UInt8])
    case confirmation
    /// One that this host does not use.
    case other(opcode: UInt8)

    /// Attributes from `first` up to `last`, both with it.
    public struct HandleRange: Sendable, Hashable {
        public var first: UInt16
        public var last: UInt16

        public init(_ first: UInt16, _ last: UInt16) {
            self.first = first
            self.last = last
        }

        /// All there can be.
        public static let all = HandleRange(1, 0xFFFF)
    }

    public struct TypedHandle: Sendable, Hashable {
        public var handle: UInt16
        public var type: BluetoothUUID

        public init(_ handle: UInt16, _ type: BluetoothUUID) {
            self.handle = handle
            self.type = type
        }
    }

    public struct HandleValue: Sendable, Hashable {
        public var handle: UInt16
        public var value: [UInt8]

        public init(_ handle: UInt16, _ value: [UInt8]) {
            self.handle = handle
            self.value = value
        }
    }

    public struct GroupValue: Sendable, Hashable {
        public var range: HandleRange
        public var value: [UInt8]

        public init(_ range: HandleRange, _ value: [UInt8]) {
            self.range = range
            self.value = value
        }
    }
}
