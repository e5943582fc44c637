// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshBluetoothStack

/// Who is told of a link's notifications.
///
/// Not a part of the link's actor, since each notification of a busy link would pay for finding out that it is on the loop
/// already. Sendable because of one invariant: it is used on the controller's loop only.
final class LinkNotifications: @unchecked Sendable {
    typealias Handler = @Sendable (Data) -> Void

    /// By the handle of the value; a list, since few are listened to.
    private var handlers: [(attribute: UInt16, handler: Handler)] = []
    /// Whether the link's machine does nothing with a notification in one piece but to have it delivered.
    var isShortWayOpen = false

    subscript(attribute: UInt16) -> Handler? {
        get { handlers.first { $0.attribute == attribute }?.handler }
        set {
            handlers.removeAll { $0.attribute == attribute }
            if let newValue { handlers.append((attribute, newValue)) }
        }
    }

    /// Nobody is told any more.
    func removeAll() {
        handlers = []
    }

    /// Tells of a notification, unless the link's machine has to see it.
    func deliver(_ notification: WholeNotification, _ packet: RawSpan) -> Bool {
        guard isShortWayOpen else { return false }
        if let handler = self[notification.attribute] {
            let offset = WholeNotification.valueOffset
            let value = packet.withUnsafeBytes { bytes in
                // A notification has its headers, so there are bytes. As address and count: a slice is copied through
                // generic code.
                bytes.baseAddress.map { Data(bytes: $0 + offset, count: bytes.count - offset) } ?? Data()
            }
            handler(value)
        }
        return true
    }
}
