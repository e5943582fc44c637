// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshTestSupport
import Testing

/// The short way of a notification from the controller to its listener says what the long one says.
struct WholeNotificationTests {
    /// What came out of either way.
    private struct Told: Equatable {
        var attribute: UInt16
        var value: [UInt8]
    }

    private static let handle = ConnectionHandle(0x40)
    private static let packet = hex("4020 0900 0500 0400 1b 0300 aabb")

    private static func makeLink() -> LinkStateMachine<Int> {
        LinkStateMachine(
            ConnectionComplete(
                status: .success, handle: handle, role: .central, peer: PairingPair.peripheralAddress,
                parameters: .init(interval: 12, latency: 0, supervisionTimeout: 500)),
            configuration: .init(security: .init(role: .central, bond: nil, requiresAuthentication: false)))
    }

    @Test func `a notification in one packet is told by its link and its attribute`() throws {
        let found = WholeNotification(Self.packet.span.bytes)
        let notification = try #require(found)
        #expect(notification.connection == Self.handle && notification.attribute == 3)
        #expect(Array(Self.packet[WholeNotification.valueOffset...]) == [0xAA, 0xBB])
    }

    @Test(arguments: [
        "4020 0900 0500 0400 1d 0300 aabb",  // an indication
        "4020 0900 0500 0600 1b 0300 aabb",  // another channel
        "4010 0900 0500 0400 1b 0300 aabb",  // a continuation
        "4020 0900 0600 0400 1b 0300 aabb",  // not the whole frame
        "4020 0900 0400 0400 1b 0300 aabb", "4020 0800 0500 0400 1b 0300 aabb", "4020 0600 0200 0400 1b 03", "40", "",
    ])
    func `anything else is not`(packet: String) {
        let bytes = hex(packet)
        let notification = WholeNotification(bytes.span.bytes)
        #expect(notification == nil)
    }

    @Test func `a link takes none while a piece waits for its rest, and none after its end`() {
        var link = Self.makeLink()
        expect(link.takesWholeNotifications, is: true)
        _ = link.pieceReceived(.firstFromController, Array(Self.packet[4..<10]), now: .zero)
        expect(link.takesWholeNotifications, is: false)
        _ = link.pieceReceived(.continuation, Array(Self.packet[10...]), now: .zero)
        expect(link.takesWholeNotifications, is: true)
        _ = link.controllerLost(now: .zero)
        expect(link.takesWholeNotifications, is: false)
    }

    @Test func `data passes while its link is there and not being encrypted`() {
        var order = InboundOrderStateMachine()
        expect(order.passes(Self.handle), is: false)
        _ = order.linkOpened(Self.handle)
        expect(order.passes(Self.handle), is: true)
        order.encryptionBegan(Self.handle)
        expect(order.passes(Self.handle), is: false)
        _ = order.encryptionChanged(Self.handle)
        expect(order.passes(Self.handle), is: true)
        order.linkClosed(Self.handle)
        expect(order.passes(Self.handle), is: false)
    }

    private func expect(_ value: Bool, is wanted: Bool, _ location: SourceLocation = #_sourceLocation) {
        #expect(value == wanted, sourceLocation: location)
    }

    // MARK: Both ways

    /// The machines that a packet goes through.
    private struct Receiver: ~Copyable {
        var order = InboundOrderStateMachine()
        var link = makeLink()
        var told: [Told] = []
        /// Whatever else the machines did, in their order.
        var actions = 0
        var shortWays = 0

        mutating func take(_ bytes: [UInt8], mayTakeShortWay: Bool, now: Duration) {
            if mayTakeShortWay, let notification = WholeNotification(bytes.span.bytes),
                order.passes(notification.connection), link.takesWholeNotifications
            {
                shortWays += 1
                told.append(
                    Told(attribute: notification.attribute, value: Array(bytes[WholeNotification.valueOffset...])))
                return
            }
            guard let packet = try? ACLPacket.decode(bytes.span.bytes),
                case .deliver(let packets) = order.packetReceived(packet, now: now)
            else { return }
            deliver(packets, now)
        }

        mutating func deliver(_ packets: [ACLPacket], _ now: Duration) {
            for packet in packets where packet.handle == WholeNotificationTests.handle {
                note(link.pieceReceived(packet.boundary, packet.payload, now: now))
            }
        }

        mutating func note(_ list: [LinkStateMachine<Int>.Action]) {
            for action in list {
                if case .deliver(let delivery) = action, !delivery.isIndication {
                    told.append(Told(attribute: delivery.handle, value: delivery.value))
                } else {
                    actions += 1
                }
            }
        }
    }

    private static func randomPacket(_ random: inout some RandomNumberGenerator) -> [UInt8] {
        let value = (0..<Int.random(in: 0...6, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        let attribute = UInt8.random(in: 1...4, using: &random)
        var frame = L2CAPFrame(channel: 4, payload: [0x1B, attribute, 0] + value)
        switch Int.random(in: 0..<12, using: &random) {
        case 0: frame.payload[0] = 0x1D
        case 1: frame.payload = [0x0B] + value
        case 2: frame.channel = UInt16.random(in: 3...7, using: &random)
        case 3: frame.payload = Array(frame.payload.prefix(Int.random(in: 0...3, using: &random)))
        default: break
        }
        var piece = frame.bytes
        switch Int.random(in: 0..<10, using: &random) {
        case 0: piece = Array(piece.prefix(Int.random(in: 0...piece.count, using: &random)))
        case 1: piece = Array(piece.dropFirst(Int.random(in: 0...piece.count, using: &random)))
        case 2: piece.append(7)
        default: break
        }
        let boundaries: [ACLPacket.Boundary] = [
            .firstFromController, .firstFromController, .firstFromController, .firstFromController, .continuation,
            .firstFromHost, .complete,
        ]
        let packet = ACLPacket(
            handle: Int.random(in: 0..<10, using: &random) == 0 ? ConnectionHandle(0x41) : handle,
            boundary: boundaries.randomElement(using: &random) ?? .complete, payload: piece)
        var bytes = packet.packet
        if Int.random(in: 0..<20, using: &random) == 0 {
            bytes.removeLast(Int.random(in: 0...bytes.count, using: &random))
        }
        return bytes
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `whatever comes, both ways tell the same in the same order`(seed: UInt64) {
        var random = SplitMix(state: seed)
        var short = Receiver()
        var long = Receiver()
        for step in 0..<300 {
            let now = Duration.milliseconds(step)
            switch Int.random(in: 0..<40, using: &random) {
            case 0:
                short.deliver(short.order.linkOpened(Self.handle), now)
                long.deliver(long.order.linkOpened(Self.handle), now)
            case 1:
                short.order.encryptionBegan(Self.handle)
                long.order.encryptionBegan(Self.handle)
            case 2, 3:
                short.deliver(short.order.encryptionChanged(Self.handle), now)
                long.deliver(long.order.encryptionChanged(Self.handle), now)
            case 4:
                short.order.linkClosed(Self.handle)
                long.order.linkClosed(Self.handle)
            case 5 where step > 250:
                short.note(short.link.controllerLost(now: now))
                long.note(long.link.controllerLost(now: now))
            default:
                let packet = Self.randomPacket(&random)
                short.take(packet, mayTakeShortWay: true, now: now)
                long.take(packet, mayTakeShortWay: false, now: now)
            }
        }
        let (told, expected) = (short.told, long.told)
        #expect(told == expected)
        let (actions, expectedActions) = (short.actions, long.actions)
        #expect(actions == expectedActions)
        let (deadline, expectedDeadline) = (short.link.nextDeadline, long.link.nextDeadline)
        #expect(deadline == expectedDeadline)
        let (shortWays, others) = (short.shortWays, long.shortWays)
        #expect(shortWays <= told.count && others == 0)
    }
}
