// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Which signals somebody wants (D-Bus Specification, "Match Rules"). What is nil is not compared.
public struct DBusMatch: Sendable, Hashable {
    /// A unique name, or a well-known one: then signals of the connection that owns it when they are sent.
    public var sender: String?
    public var interface: String?
    public var member: String?
    public var path: String?
    /// The path itself and all below it.
    public var pathNamespace: String?
    /// The first argument, which must be a string.
    public var argument0: String?

    public init(
        sender: String? = nil, interface: String? = nil, member: String? = nil, path: String? = nil,
        pathNamespace: String? = nil, argument0: String? = nil
    ) {
        self.sender = sender
        self.interface = interface
        self.member = member
        self.path = path
        self.pathNamespace = pathNamespace
        self.argument0 = argument0
    }

    /// The rule as the bus reads it.
    public var rule: String {
        let keys = [
            ("sender", sender), ("interface", interface), ("member", member), ("path", path),
            ("path_namespace", pathNamespace), ("arg0", argument0),
        ]
        return keys.reduce(into: "type='signal'") { rule, key in
            guard let value = key.1 else { return }
            rule += ",\(key.0)='"
            // Within quotes every character stands for itself, a backslash too; an apostrophe is written outside of them.
            for character in value.unicodeScalars {
                if character == "'" { rule += "'\\''" } else { rule.unicodeScalars.append(character) }
            }
            rule += "'"
        }
    }

    /// The sender's name if its owner can change. The bus itself signs with its well-known name.
    var followedSender: String? {
        guard let sender, !sender.hasPrefix(":"), sender != DBusNames.bus else { return nil }
        return sender
    }

    /// Whether a signal is one of these, as far as its header says. `owner` owns ``followedSender``.
    func accepts(_ header: DBusSignal, owner: String?) -> Bool {
        if let sender, header.sender != (followedSender == nil ? sender : owner) { return false }
        if let interface, header.interface != interface { return false }
        if let member, header.member != member { return false }
        if let path, header.path != path { return false }
        if let pathNamespace, pathNamespace != "/", header.path != pathNamespace {
            return header.path.hasPrefix(pathNamespace + "/")
        }
        return true
    }

    /// Whether the arguments are those that are wanted.
    func accepts(_ arguments: [DBusValue]) -> Bool {
        guard let argument0 else { return true }
        return arguments.first == .string(argument0)
    }
}
