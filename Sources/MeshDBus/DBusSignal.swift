// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A signal that arrived.
public struct DBusSignal: Sendable, Hashable {
    /// The unique name of the sender, such as `:1.7`, or `org.freedesktop.DBus` for the bus itself.
    public var sender: String
    public var path: String
    public var interface: String
    public var member: String
    /// Descriptors in here are open while the handler runs; see ``DBusValue/descriptor(_:)``.
    public var arguments: [DBusValue]

    public init(sender: String, path: String, interface: String, member: String, arguments: [DBusValue] = []) {
        self.sender = sender
        self.path = path
        self.interface = interface
        self.member = member
        self.arguments = arguments
    }
}
