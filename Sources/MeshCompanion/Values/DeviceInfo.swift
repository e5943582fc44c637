// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// DEVICE_INFO: the board and its firmware (companion-protocol §1.6). Which fields there are follows from the length.
public struct DeviceInfo: Sendable, Hashable {
    /// What firmware since protocol version 3 tells.
    public struct Details: Sendable, Hashable {
        /// Half of how many contacts the radio keeps.
        public var halfMaximumContacts: UInt8
        public var maximumChannels: UInt8
        /// The Bluetooth PIN in clear: only for the radio's owner.
        public var pin: UInt32
        /// The date of the firmware.
        public var build: String
        public var model: String
        public var firmware: String

        public init(
            halfMaximumContacts: UInt8, maximumChannels: UInt8, pin: UInt32, build: String, model: String,
            firmware: String
        ) {
            self.halfMaximumContacts = halfMaximumContacts
            self.maximumChannels = maximumChannels
            self.pin = pin
            self.build = build
            self.model = model
            self.firmware = firmware
        }
    }

    public var protocolVersion: UInt8
    public var details: Details?
    /// Whether the radio passes packets on; since protocol version 9.
    public var repeats: Bool?
    /// The bytes of a hash in the paths of floods it begins, less one; since protocol version 10.
    public var pathHashMode: UInt8?

    public init(
        protocolVersion: UInt8, details: Details? = nil, repeats: Bool? = nil, pathHashMode: UInt8? = nil
    ) {
        self.protocolVersion = protocolVersion
        self.details = details
        self.repeats = repeats
        self.pathHashMode = pathHashMode
    }

    static let empty = DeviceInfo(protocolVersion: 0)
}

extension DeviceInfo: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.integer("protocol_version", &protocolVersion)
        // Before version 3 the bytes after the version are reserved or of another length (meshcore_py 2.3.17 reads none).
        if protocolVersion < 3 {
            if self != DeviceInfo(protocolVersion: protocolVersion) { throw visitor.invalid("protocol_version") }
            return
        }
        if try visitor.begin("model", isSet: details != nil) {
            var found =
                details
                ?? Details(halfMaximumContacts: 0, maximumChannels: 0, pin: 0, build: "", model: "", firmware: "")
            try visitor.integer("half_maximum_contacts", &found.halfMaximumContacts)
            try visitor.integer("maximum_channels", &found.maximumChannels)
            try visitor.integer("pin", &found.pin, secret: true)
            try visitor.fixedText("build", &found.build, length: 12)
            try visitor.fixedText("model", &found.model, length: 40)
            try visitor.fixedText("firmware", &found.firmware, length: 20)
            details = found
        } else {
            details = nil
        }
        try visitor.flag("repeat", optional: &repeats)
        try visitor.integer("path_hash_mode", optional: &pathHashMode)
    }
}
