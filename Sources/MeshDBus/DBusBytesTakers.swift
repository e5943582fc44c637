// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// Handlers of properties whose values are bytes: the short way for signals that tell of one such value.
///
/// Not a part of the connection's actor, since each value would pay for finding out that it is on the loop already. Sendable
/// because of one invariant: it is used on the loop's thread only.
final class DBusBytesTakers: @unchecked Sendable {
    private struct Taker {
        let sender: String
        /// The unique name of the sender; empty while it has none.
        var owner: [UInt8]
        let path: [UInt8]
        let interface: [UInt8]
        let name: [UInt8]
        let handler: @Sendable (UnsafeRawBufferPointer) -> Void
    }

    private static let properties = Array("org.freedesktop.DBus.Properties".utf8)
    private static let changed = Array("PropertiesChanged".utf8)
    private static let arguments = Array("sa{sv}as".utf8)
    private static let bytes = Array("ay".utf8)

    /// One for each path. There are as many as links, so that they are looked through.
    private var takers: [Taker] = []

    func set(
        _ property: DBusBytesProperty, owner: String?, _ handler: (@Sendable (UnsafeRawBufferPointer) -> Void)?
    ) {
        let path = Array(property.path.utf8)
        takers.removeAll { $0.path == path }
        guard let handler else { return }
        takers.append(
            Taker(
                sender: property.sender, owner: Array((owner ?? "").utf8), path: path,
                interface: Array(property.interface.utf8), name: Array(property.name.utf8), handler: handler))
    }

    /// Somebody else has a name now, or nobody.
    func setOwner(of sender: String, _ owner: String?) {
        for index in takers.indices where takers[index].sender == sender {
            takers[index].owner = Array((owner ?? "").utf8)
        }
    }

    func forgetAll() {
        takers = []
    }

    /// Whether this was a signal of one value and somebody took it.
    func take(_ header: DBusHeader, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard header.kind == .signal, !takers.isEmpty, header.descriptors == 0,
            bytes.holds(Self.changed, at: header.member), bytes.holds(Self.properties, at: header.interface),
            bytes.holds(Self.arguments, at: header.signature),
            let index = takers.firstIndex(where: { bytes.holds($0.path, at: header.path) })
        else { return false }
        // The handler may set another one.
        let taker = takers[index]
        guard !header.sender.isEmpty, bytes.holds(taker.owner, at: header.sender),
            let value = try? Self.value(of: taker, header, bytes)
        else { return false }
        taker.handler(value)
        return true
    }

    /// The value, if it is all that has changed; else it is for the matches, with all that has.
    private static func value(
        of taker: Taker, _ header: DBusHeader, _ bytes: UnsafeRawBufferPointer
    ) throws(DBusError) -> UnsafeRawBufferPointer? {
        var reader = DBusWireReader(bytes, isSwapped: header.isSwapped, at: header.body.lowerBound)
        guard bytes.holds(taker.interface, at: try reader.text()) else { return nil }
        let entries = try reader.array(alignedTo: 8)
        guard !entries.isEmpty, bytes.holds(taker.name, at: try reader.text()),
            bytes.holds(Self.bytes, at: try reader.signature())
        else { return nil }
        let value = try reader.array(alignedTo: 1)
        guard value.upperBound == entries.upperBound else { return nil }
        reader.skip(to: value.upperBound)
        return try reader.array(alignedTo: 4) == bytes.count..<bytes.count ? reader.slice(value) : nil
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these bytes stand there, and no others.
    fileprivate func holds(_ wanted: [UInt8], at range: Range<Int>) -> Bool {
        guard wanted.count == range.count else { return false }
        return wanted.withUnsafeBytes { wanted in
            guard let wanted = wanted.baseAddress, let base = baseAddress else { return true }
            return memcmp(base + range.lowerBound, wanted, range.count) == 0
        }
    }
}
