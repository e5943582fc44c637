// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What the bus or the called program answered in place of a result.
///
/// The vocabulary of errors belongs to the program that is called: whoever calls translates it.
public struct DBusError: Error, Sendable, Hashable {
    /// Such as `org.bluez.Error.NotReady`.
    public var name: String
    /// For people; programs may change it at any time.
    public var message: String

    public init(_ name: String, _ message: String = "") {
        self.name = name
        self.message = message
    }

    /// The connection to the bus ended, or there is none.
    public static let disconnected = "org.freedesktop.DBus.Error.Disconnected"
    /// The deadline of a call passed.
    public static let noReply = "org.freedesktop.DBus.Error.NoReply"
    /// Nobody owns the name that was called, and the bus, which was asked to, could not start who would. Without that it
    /// answers ``nameHasNoOwner``.
    public static let serviceUnknown = "org.freedesktop.DBus.Error.ServiceUnknown"
    /// The bus's policy refuses.
    public static let accessDenied = "org.freedesktop.DBus.Error.AccessDenied"
    /// Nothing is exported at the path that was called.
    public static let unknownObject = "org.freedesktop.DBus.Error.UnknownObject"
    /// The object has no such interface.
    public static let unknownInterface = "org.freedesktop.DBus.Error.UnknownInterface"
    /// The object has no such method.
    public static let unknownMethod = "org.freedesktop.DBus.Error.UnknownMethod"
    /// Something else is exported there already.
    public static let objectPathInUse = "org.freedesktop.DBus.Error.ObjectPathInUse"
    /// The arguments, or a name or path, are not what D-Bus or the called program allows.
    public static let invalidArguments = "org.freedesktop.DBus.Error.InvalidArgs"
    /// The address of the bus cannot be used.
    public static let badAddress = "org.freedesktop.DBus.Error.BadAddress"
    /// The name that was called, or asked for, has no owner.
    public static let nameHasNoOwner = "org.freedesktop.DBus.Error.NameHasNoOwner"
    /// This connection, or this machine, does not do that.
    public static let notSupported = "org.freedesktop.DBus.Error.NotSupported"
    /// Memory, or descriptors, ran out.
    public static let noMemory = "org.freedesktop.DBus.Error.NoMemory"
    /// It went wrong; the text says more.
    public static let failed = "org.freedesktop.DBus.Error.Failed"
    /// The task that called was cancelled. Not a name of the specification.
    public static let cancelled = "meshhost.Cancelled"
}

extension DBusError: CustomStringConvertible {
    public var description: String { message.isEmpty ? name : "\(name): \(message)" }
}
