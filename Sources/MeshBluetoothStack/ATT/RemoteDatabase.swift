// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// What was found of a peer's attributes, to be used again on the next link.
public struct RemoteDatabase: Sendable, Hashable {
    /// By what it is known to be the same still.
    public enum Tag: Sendable, Hashable {
        /// The Database Hash: covers every handle (Core Specification 5.4, Vol 3 Part G §7.3).
        case hash([UInt8])
        /// The Firmware Revision String of a device without a hash: one build has one database.
        case firmware([UInt8])
        /// The device has neither: what was found is good for its own link only.
        case absent
    }

    /// A service, with what was found inside.
    public struct Service: Sendable, Hashable {
        public var service: RemoteService
        public var characteristics: [RemoteCharacteristic]

        public init(_ service: RemoteService, characteristics: [RemoteCharacteristic]) {
            self.service = service
            self.characteristics = characteristics
        }
    }

    public var tag: Tag
    public var services: [Service]
    /// CCCDs by the handle of the value they belong to.
    public var configurations: [UInt16: UInt16]
    /// Where the device tells that its database has changed; nil if it does not.
    public var serviceChanged: UInt16?

    public init(
        tag: Tag, services: [Service] = [], configurations: [UInt16: UInt16] = [:], serviceChanged: UInt16? = nil
    ) {
        self.tag = tag
        self.services = services
        self.configurations = configurations
        self.serviceChanged = serviceChanged
    }

    /// Whether handles are the same, whatever stands for it.
    func hasLayout(of other: RemoteDatabase) -> Bool {
        services == other.services && configurations == other.configurations
    }
}

extension ATTErrorCode {
    /// What an attribute answers that is not where it was, or not what it was: the request itself is sound (Vol 3 Part F
    /// §3.4.1.1). Database Out Of Sync says it in so many words (Vol 3 Part G §2.5.2.1).
    public var saysThatHandlesAreStale: Bool {
        let stale: [ATTErrorCode] = [
            .invalidHandle, .attributeNotFound, .readNotPermitted, .writeNotPermitted, .databaseOutOfSync,
        ]
        return stale.contains(self)
    }
}

extension BluetoothUUID {
    /// Firmware Revision String of the Device Information service.
    public static let firmwareRevision = BluetoothUUID(0x2A26)
}
