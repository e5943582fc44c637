// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
internal import MeshLoop

/// What the controller tells.
extension HCIController {
    func take(_ event: HCIEvent) {
        let now = loop.now
        switch event {
        case .commandComplete(let opcode, let parameters, let allowance):
            perform(
                flow.commandCompleted(opcode, parameters: parameters, allowance: allowance, now: now), sent: opcode)
        case .commandStatus(let opcode, let status, let allowance):
            perform(flow.commandStatusReported(opcode, status, allowance: allowance, now: now), sent: opcode)
        case .hardwareError(let code): perform(flow.hardwareErrorReported(code, now: now))
        case .completedPackets(let entries):
            for entry in entries { outbound?.packetsCompleted(entry) }
            sendPackets()
            for entry in entries { links[entry.handle]?.assumeIsolated { $0.packetsCompleted() } }
        case .connectionComplete(let connection): perform(creation.connectionCompleted(connection, now: now))
        case .advertisingReports(let reports): for report in reports { heard(report) }
        case .disconnectionComplete(.success, let handle, let reason):
            if links[handle] != nil { quality.linkEnded(reason, now: now) }
            end(handle, event)
        case .encryptionChange(_, let handle, _), .encryptionKeyRefreshed(_, let handle):
            // Behind the event.
            let held = inbound.encryptionChanged(handle)
            pass(event, handle)
            deliver(held)
        case .connectionUpdated(_, let handle, _), .remoteFeatures(_, let handle, _),
            .longTermKeyRequested(let handle, _, _), .parametersRequested(let handle, _),
            .dataLengthChanged(let handle, _, _), .phyUpdated(_, let handle, _, _), .remoteVersion(_, let handle, _),
            .disconnectionComplete(_, let handle, _):
            pass(event, handle)
        case .dataBufferOverflow, .advertisingSetTerminated, .other: break
        }
    }

    private func pass(_ event: HCIEvent, _ handle: ConnectionHandle) {
        links[handle]?.assumeIsolated { $0.eventReceived(event) }
    }

    func deliver(_ packets: [ACLPacket]) {
        for packet in packets {
            links[packet.handle]?.assumeIsolated { $0.pieceReceived(packet.boundary, packet.payload) }
        }
    }

    /// A link is there: its machines, in the order that the stack asks for.
    func begin(_ link: HCILink) {
        let handle = link.handle
        // The end of the one before was not told, or was lost on the way: nobody would tell it any more.
        if links[handle] != nil { end(handle, .disconnectionComplete(.success, handle, reason: .connectionTimeout)) }
        let early = inbound.linkOpened(handle)
        outbound?.linkOpened(handle)
        links[handle] = link
        let peer = link.connection.peer
        for (serial, seeker) in seekers where seeker.endsWithLink && isMeant(identity(of: peer), seeker.target) {
            seekers[serial] = nil
            seeker.continuation.resume(returning: peer)
        }
        deliver(early)
    }

    /// A link has ended; its buffers are free at once.
    private func end(_ handle: ConnectionHandle, _ event: HCIEvent) {
        inbound.linkClosed(handle)
        _ = outbound?.linkClosed(handle)
        let link = links.removeValue(forKey: handle)
        link?.assumeIsolated { $0.eventReceived(event) }
        perform(creation.disconnected(handle))
        sendPackets()
    }
}
