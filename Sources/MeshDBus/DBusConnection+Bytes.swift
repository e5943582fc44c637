// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A property whose values are bytes and change often, such as what a Bluetooth device sends.
public struct DBusBytesProperty: Sendable, Hashable {
    /// The well-known name of the program that has it.
    public var sender: String
    public var path: String
    public var interface: String
    public var name: String

    public init(sender: String, path: String, interface: String, name: String) {
        self.sender = sender
        self.path = path
        self.interface = interface
        self.name = name
    }
}

extension DBusConnection {
    /// From now on `handler` gets each value that the property is told to have changed to, straight out of what was read from
    /// the socket, which is many times cheaper than a ``DBusSignal``; nil ends it. One handler for each path.
    ///
    /// It adds no match: one for the sender's `PropertiesChanged` must be there, whose handler then does not see signals that
    /// tell of nothing but this value. Handlers run as those of matches do. The bytes are lent for the call.
    public func setBytesHandler(
        of property: DBusBytesProperty, _ handler: (@Sendable (UnsafeRawBufferPointer) -> Void)?
    ) {
        bytesTakers.set(property, owner: followedNames[property.sender]?.owner, handler)
    }
}
