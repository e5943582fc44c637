// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A call of a method: what is sent to a program on the bus.
public struct DBusCall: Sendable, Hashable {
    /// The bus name of the program, such as `org.bluez`.
    public var destination: String
    public var path: String
    public var interface: String
    public var member: String
    public var arguments: [DBusValue]
    /// Whether the bus may start the program when it does not run.
    public var startsService: Bool
    /// Whether the caller takes descriptors in the results, and closes them. Without, they are closed, and those in the results
    /// are -1: a program may send some to whoever calls it.
    public var takesDescriptors: Bool

    public init(
        _ destination: String, path: String, interface: String, member: String, _ arguments: [DBusValue] = [],
        startsService: Bool = false, takesDescriptors: Bool = false
    ) {
        self.destination = destination
        self.path = path
        self.interface = interface
        self.member = member
        self.arguments = arguments
        self.startsService = startsService
        self.takesDescriptors = takesDescriptors
    }

    /// A method of the bus itself.
    static func bus(_ member: String, _ arguments: [DBusValue] = []) -> DBusCall {
        DBusCall(
            DBusNames.bus, path: DBusNames.busPath, interface: DBusNames.bus, member: member, arguments)
    }
}

/// Names that the specification gives ("Message Bus Messages").
enum DBusNames {
    static let bus = "org.freedesktop.DBus"
    static let busPath = "/org/freedesktop/DBus"
    static let introspectable = "org.freedesktop.DBus.Introspectable"
    static let peer = "org.freedesktop.DBus.Peer"
}
