// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CDBus

/// A message to be sent: one of libdbus, with one reference to it.
///
/// Sendable: libdbus counts references atomically, and no message is changed once it has been made.
final class DBusMessage: @unchecked Sendable {
    let pointer: OpaquePointer

    /// Takes over the caller's reference.
    private init(taking pointer: OpaquePointer) {
        self.pointer = pointer
    }

    deinit {
        dbus_message_unref(pointer)
    }

    // MARK: Making

    // libdbus ends the process when it is given a name that is none, so each is checked before.

    convenience init(_ call: DBusCall, wantsReply: Bool = true) throws(DBusError) {
        try Self.check(call.destination, "bus name") { dbus_validate_bus_name($0, nil) }
        try Self.check(call.path, "object path") { dbus_validate_path($0, nil) }
        try Self.check(call.interface, "interface") { dbus_validate_interface($0, nil) }
        try Self.check(call.member, "member") { dbus_validate_member($0, nil) }
        self.init(
            taking: try Self.memory(
                dbus_message_new_method_call(call.destination, call.path, call.interface, call.member)))
        dbus_message_set_auto_start(pointer, call.startsService ? 1 : 0)
        dbus_message_set_no_reply(pointer, wantsReply ? 0 : 1)
        try append(call.arguments)
    }

    /// A signal to all who want it, or to one destination.
    convenience init(
        signal member: String, path: String, interface: String, destination: String?, _ arguments: [DBusValue]
    ) throws(DBusError) {
        try Self.check(path, "object path") { dbus_validate_path($0, nil) }
        try Self.check(interface, "interface") { dbus_validate_interface($0, nil) }
        try Self.check(member, "member") { dbus_validate_member($0, nil) }
        self.init(taking: try Self.memory(dbus_message_new_signal(path, interface, member)))
        if let destination {
            try Self.check(destination, "bus name") { dbus_validate_bus_name($0, nil) }
            try Self.memory(dbus_message_set_destination(pointer, destination))
        }
        try append(arguments)
    }

    /// What a method returns.
    convenience init(resultsFor address: DBusReplyAddress, _ results: [DBusValue]) throws(DBusError) {
        self.init(taking: try Self.memory(dbus_message_new(DBUS_MESSAGE_TYPE_METHOD_RETURN)))
        try answer(address)
        try append(results)
    }

    /// How a method fails. An error whose name D-Bus does not allow is sent as ``DBusError/failed`` with the name in
    /// its text.
    convenience init(errorFor address: DBusReplyAddress, _ error: DBusError) throws(DBusError) {
        let isNamed = !error.name.utf8.contains(0) && dbus_validate_error_name(error.name, nil) != 0
        self.init(taking: try Self.memory(dbus_message_new(DBUS_MESSAGE_TYPE_ERROR)))
        try answer(address)
        try Self.memory(dbus_message_set_error_name(pointer, isNamed ? error.name : DBusError.failed))
        let text = isNamed ? error.message : error.description
        try append([.string(String(text.unicodeScalars.filter { $0 != "\0" }))])
    }

    private func answer(_ address: DBusReplyAddress) throws(DBusError) {
        dbus_message_set_no_reply(pointer, 1)
        try Self.memory(dbus_message_set_destination(pointer, address.sender))
        try Self.memory(dbus_message_set_reply_serial(pointer, address.serial))
    }

    static func check(
        _ text: String, _ what: String, _ validate: (UnsafePointer<CChar>) -> dbus_bool_t
    ) throws(DBusError) {
        if text.utf8.contains(0) || text.withCString(validate) == 0 {
            throw DBusError(DBusError.invalidArguments, "'\(text)' is no \(what)")
        }
    }

    /// Every failure of libdbus that is not told otherwise is one of memory.
    static func memory(_ result: dbus_bool_t) throws(DBusError) {
        if result == 0 { throw DBusError(DBusError.noMemory) }
    }

    private static func memory(_ result: OpaquePointer?) throws(DBusError) -> OpaquePointer {
        guard let result else { throw DBusError(DBusError.noMemory) }
        return result
    }

    var hasDescriptors: Bool { dbus_message_contains_unix_fds(pointer) != 0 }
}
