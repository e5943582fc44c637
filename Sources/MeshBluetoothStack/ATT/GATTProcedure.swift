// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// What a client wants of a server (Core Specification 5.4, Vol 3 Part G §4).
public enum GATTProcedure: Sendable, Hashable {
    /// §4.3.1; asked for once on a bearer.
    case exchangeMTU
    /// All primary services (§4.4.1).
    case discoverServices
    /// The primary services with this UUID: one round trip where there is one (§4.4.2).
    case discoverService(BluetoothUUID)
    /// All characteristics of a service (§4.6.1).
    case discoverCharacteristics(ATTPacket.HandleRange)
    /// All descriptors in a range (§4.7.1).
    case discoverDescriptors(ATTPacket.HandleRange)
    /// A value of any length (§4.8.1, §4.8.3).
    case read(UInt16)
    /// The first value of this type (§4.8.2), such as ``BluetoothUUID/databaseHash``.
    case readByType(BluetoothUUID)
    /// A value that fits one packet (§4.9.3), or a longer one by prepared writes (§4.9.4).
    case write(UInt16, [UInt8])
}

/// What a procedure found.
public enum GATTResult: Sendable, Hashable {
    case mtu(Int)
    case services([RemoteService])
    case characteristics([RemoteCharacteristic])
    case descriptors([ATTPacket.TypedHandle])
    case value([UInt8])
    case written
}

/// A service of the peer.
public struct RemoteService: Sendable, Hashable {
    public var uuid: BluetoothUUID
    public var range: ATTPacket.HandleRange

    public init(uuid: BluetoothUUID, range: ATTPacket.HandleRange) {
        self.uuid = uuid
        self.range = range
    }
}

/// A characteristic of the peer (Vol 3 Part G §3.3.1).
public struct RemoteCharacteristic: Sendable, Hashable {
    public var uuid: BluetoothUUID
    /// The declaration's bits: read 0x02, write without response 0x04, write 0x08, notify 0x10, indicate 0x20.
    public var properties: UInt8
    public var declarationHandle: UInt16
    public var valueHandle: UInt16

    public init(uuid: BluetoothUUID, properties: UInt8, declarationHandle: UInt16, valueHandle: UInt16) {
        self.uuid = uuid
        self.properties = properties
        self.declarationHandle = declarationHandle
        self.valueHandle = valueHandle
    }
}

/// Why a procedure has no result.
public enum GATTFailure: Error, Sendable, Hashable {
    /// The server refuses.
    case refused(ATTErrorCode, handle: UInt16)
    /// The server's answer does not fit the request.
    case meaninglessAnswer
    /// What the server repeated of a prepared write is not what was sent; nothing was written.
    case preparedWriteMangled
    /// A value longer than 512 bytes, the most that an attribute has (Vol 3 Part F §3.2.9).
    case valueTooLong
    /// The server did not answer in time, and the bearer is over.
    case timedOut
    /// Too many procedures wait already.
    case queueFull
    /// The link has ended.
    case bearerEnded
}
