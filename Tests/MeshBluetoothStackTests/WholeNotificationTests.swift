// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import Testing

/// The short way of a notification through a link says what the long one says.
struct WholeNotificationTests {
    private let piece = hex("0500 0400 1b 0300 aabb")

    private func makeLink() -> LinkStateMachine<String> {
        LinkStateMachine(
            ConnectionComplete(
                status: .success, handle: ConnectionHandle(0x40), role: .central,
                peer: PairingPair.peripheralAddress,
                parameters: .init(interval: 12, latency: 0, supervisionTimeout: 500)),
            configuration: .init(security: .init(role: .central, bond: nil, requiresAuthentication: false)))
    }

    @Test func `a notification in one piece is told by its handle`() {
        var link = makeLink()
        let handle = link.wholeNotification(.firstFromController, piece)
        #expect(handle == 3)
        #expect(Array(piece[LinkStateMachine<String>.notificationValueOffset...]) == [0xAA, 0xBB])
        let actions = link.pieceReceived(.firstFromController, piece, now: .zero)
        guard case .deliver(let delivery)? = actions.first else {
            Issue.record("not delivered")
            return
        }
        #expect(delivery.handle == 3 && delivery.value == [0xAA, 0xBB])
    }

    @Test(arguments: [
        "0500 0400 1d 0300 aabb", "0500 0600 1b 0300 aabb", "0600 0400 1b 0300 aabb", "0400 0400 1b 0300 aabb",
        "0200 0400 1b 03", "",
    ])
    func `anything else is not`(bytes: String) {
        let link = makeLink()
        let handle = link.wholeNotification(.firstFromController, hex(bytes))
        #expect(handle == nil)
    }

    @Test func `a piece that belongs to others is not`() {
        var link = makeLink()
        let continued = link.wholeNotification(.continuation, piece)
        #expect(continued == nil)
        _ = link.pieceReceived(.firstFromController, Array(piece.prefix(6)), now: .zero)
        let behind = link.wholeNotification(.firstFromController, piece)
        #expect(behind == nil)
    }

    @Test func `a link that has ended tells nothing`() {
        var link = makeLink()
        _ = link.controllerLost(now: .zero)
        let handle = link.wholeNotification(.firstFromController, piece)
        #expect(handle == nil)
    }
}
