// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CDBus
internal import Glibc

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

/// A handler of such a property.
struct DBusBytesHandler {
    let property: DBusBytesProperty
    let handler: @Sendable (UnsafeRawBufferPointer) -> Void
}

extension DBusConnection {
    /// From now on `handler` gets each value that the property is told to have changed to, straight out of the message,
    /// which is several times cheaper than a ``DBusSignal``; nil ends it. One handler for each path.
    ///
    /// It adds no match: one for the sender's `PropertiesChanged` must be there, whose handler then does not see signals that
    /// tell of nothing but this value. Handlers run as those of matches do. The bytes are lent for the call.
    public func setBytesHandler(
        of property: DBusBytesProperty, _ handler: (@Sendable (UnsafeRawBufferPointer) -> Void)?
    ) {
        bytesHandlers[property.path] = handler.map { DBusBytesHandler(property: property, handler: $0) }
    }

    /// Whether this was a signal of one value and somebody took it.
    func deliverBytes(_ message: DBusMessage) -> Bool {
        guard !bytesHandlers.isEmpty,
            dbus_message_is_signal(message.pointer, "org.freedesktop.DBus.Properties", "PropertiesChanged") != 0,
            let path = message.path, let taker = bytesHandlers[path],
            let owner = followedNames[taker.property.sender]?.owner, owner == message.sender
        else { return false }
        var iterator = DBusMessageIter()
        guard dbus_message_iter_init(message.pointer, &iterator) != 0,
            Self.isText(&iterator, taker.property.interface), dbus_message_iter_next(&iterator) != 0,
            Self.type(&iterator) == UInt8(ascii: "a"),
            dbus_message_iter_get_element_type(&iterator) == Int32(UInt8(ascii: "e"))
        else { return false }
        var entries = DBusMessageIter()
        dbus_message_iter_recurse(&iterator, &entries)
        guard Self.type(&entries) == UInt8(ascii: "e") else { return false }
        var entry = DBusMessageIter()
        dbus_message_iter_recurse(&entries, &entry)
        guard Self.isText(&entry, taker.property.name), dbus_message_iter_next(&entry) != 0,
            Self.type(&entry) == UInt8(ascii: "v"),
            // What else has changed is for the matches, and this value with it.
            dbus_message_iter_next(&entries) == 0
        else { return false }
        var value = DBusMessageIter()
        dbus_message_iter_recurse(&entry, &value)
        guard Self.type(&value) == UInt8(ascii: "a"),
            dbus_message_iter_get_element_type(&value) == Int32(UInt8(ascii: "y"))
        else { return false }
        var bytes = DBusMessageIter()
        dbus_message_iter_recurse(&value, &bytes)
        var start: UnsafePointer<UInt8>?
        var count: Int32 = 0
        dbus_message_iter_get_fixed_array(&bytes, &start, &count)
        taker.handler(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(count)))
        return true
    }

    private static func type(_ iterator: inout DBusMessageIter) -> UInt8 {
        UInt8(truncatingIfNeeded: dbus_message_iter_get_arg_type(&iterator))
    }

    private static func isText(_ iterator: inout DBusMessageIter, _ wanted: String) -> Bool {
        guard type(&iterator) == UInt8(ascii: "s") else { return false }
        var text: UnsafePointer<CChar>?
        dbus_message_iter_get_basic(&iterator, &text)
        guard let text else { return false }
        return wanted.withCString { strcmp(text, $0) } == 0
    }
}
