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
    /// Nobody owns the name that was called.
    public static let serviceUnknown = "org.freedesktop.DBus.Error.ServiceUnknown"
    /// The bus's policy refuses.
    public static let accessDenied = "org.freedesktop.DBus.Error.AccessDenied"
    /// The task that called was cancelled. Not a name of the specification.
    public static let cancelled = "meshhost.Cancelled"
}

extension DBusError: CustomStringConvertible {
    public var description: String { message.isEmpty ? name : "\(name): \(message)" }
}
