// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CDBus
internal import Glibc
internal import MeshLoop

/// What one interface of one path does.
struct DBusExport {
    let id: UInt64
    let handler: @Sendable (DBusMethodCall) -> Void
}

/// Keeps an exported interface: dropping it ends the export. From any thread.
public final class DBusExportToken: Sendable {
    private weak let connection: DBusConnection?
    private let path: String
    private let interface: String
    private let id: UInt64

    init(_ connection: DBusConnection, path: String, interface: String, id: UInt64) {
        self.connection = connection
        self.path = path
        self.interface = interface
        self.id = id
    }

    deinit {
        let (path, interface, id) = (path, interface, id)
        connection?.performIfOpen { $0.removeExport(path: path, interface: interface, id: id) }
    }
}

extension DBusConnection {
    /// Answers calls of an interface at a path: `handler` runs on the loop, in the order in which calls and signals
    /// arrive, and answers each call then or later.
    ///
    /// The path's introspection, and that of the paths above it, name what is exported; `org.freedesktop.DBus.Peer` is
    /// answered at every path. Throws ``DBusError/objectPathInUse`` if the interface is exported there already.
    public func export(
        path: String, interface: String, _ handler: @escaping @Sendable (DBusMethodCall) -> Void
    ) throws(DBusError) -> DBusExportToken {
        guard transport.isOpen else { throw DBusTransport.disconnected }
        try DBusMessage.check(path, "object path") { dbus_validate_path($0, nil) }
        try DBusMessage.check(interface, "interface") { dbus_validate_interface($0, nil) }
        if exports[path]?[interface] != nil {
            throw DBusError(DBusError.objectPathInUse, "\(interface) is exported at \(path) already")
        }
        let id = nextID()
        exports[path, default: [:]][interface] = DBusExport(id: id, handler: handler)
        return DBusExportToken(self, path: path, interface: interface, id: id)
    }

    fileprivate func removeExport(path: String, interface: String, id: UInt64) {
        guard exports[path]?[interface]?.id == id else { return }
        exports[path]?[interface] = nil
        if exports[path]?.isEmpty == true { exports[path] = nil }
    }

    // MARK: Answering

    /// Hands a call to the handler that it is for, or answers it.
    func answer(_ message: DBusReceived) {
        var header = DBusSignal(
            sender: message.sender ?? "", path: message.path ?? "", interface: message.interface ?? "",
            member: message.member ?? "")
        let address = message.replyAddress
        do throws(DBusError) {
            if header.interface == DBusNames.introspectable, header.member == "Introspect",
                let description = introspection(of: header.path)
            {
                if let address { try transport.send(DBusMessage(resultsFor: address, [.string(description)])) }
                return
            }
            if header.interface == DBusNames.peer {
                let results = try peerResults(of: header.member)
                if let address { try transport.send(DBusMessage(resultsFor: address, results)) }
                return
            }
            let export = try export(for: &header)
            let (arguments, descriptors) = try message.arguments()
            header.arguments = arguments
            export.handler(
                DBusMethodCall(header, descriptors: descriptors, address: address, connection: self))
        } catch {
            guard let address, let answer = try? DBusMessage(errorFor: address, error) else { return }
            _ = try? transport.send(answer)
        }
    }

    /// What every program answers at every path (D-Bus Specification, `org.freedesktop.DBus.Peer`).
    private func peerResults(of member: String) throws(DBusError) -> [DBusValue] {
        switch member {
        case "Ping": return []
        case "GetMachineId":
            guard let id = dbus_try_get_local_machine_id(nil) else {
                throw DBusError(DBusError.failed, "this machine has no identifier")
            }
            defer { dbus_free(id) }
            return [.string(String(cString: id))]
        default: throw DBusError(DBusError.unknownMethod, "\(DBusNames.peer) has no \(member)")
        }
    }

    /// The export that a call is for. A call may leave out its interface where there is but one.
    private func export(for header: inout DBusSignal) throws(DBusError) -> DBusExport {
        guard let interfaces = exports[header.path] else {
            throw DBusError(DBusError.unknownObject, "there is nothing at \(header.path)")
        }
        if header.interface.isEmpty, interfaces.count == 1, let only = interfaces.first {
            header.interface = only.key
        }
        guard let export = interfaces[header.interface] else {
            throw DBusError(
                header.interface.isEmpty ? DBusError.unknownMethod : DBusError.unknownInterface,
                "\(header.path) has no \(header.interface.isEmpty ? header.member : header.interface)")
        }
        return export
    }

    /// What is at a path and right below it (D-Bus Specification, "Introspection Data Format"); nil when nothing is. The
    /// members of an interface are its handler's, and not named.
    private func introspection(of path: String) -> String? {
        let prefix = path == "/" ? "/" : path + "/"
        let children = Set(
            exports.keys.filter { $0.hasPrefix(prefix) && $0 != path }
                .map { $0.dropFirst(prefix.count).prefix { $0 != "/" } })
        let interfaces = exports[path].map { $0.keys.sorted() + [DBusNames.introspectable, DBusNames.peer] } ?? []
        if interfaces.isEmpty && children.isEmpty { return nil }
        // Neither names nor paths can contain what XML would have escaped.
        var lines = [
            "<!DOCTYPE node PUBLIC \"-//freedesktop//DTD D-BUS Object Introspection 1.0//EN\"",
            " \"http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd\">", "<node>",
        ]
        lines += interfaces.map { "  <interface name=\"\($0)\"/>" }
        lines += children.sorted().map { "  <node name=\"\($0)\"/>" }
        return (lines + ["</node>", ""]).joined(separator: "\n")
    }
}
