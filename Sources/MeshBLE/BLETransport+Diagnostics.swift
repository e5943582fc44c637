// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
public import MeshTransportAPI

extension BLETransport {
    public func diagnostics() async -> JSONValue {
        // First: the link may end meanwhile.
        let link = await up?.gatt.diagnostics ?? [:]
        var object: [String: JSONValue] = [
            "phase": .string(machine.phase.rawValue), "connected": .bool(machine.isConnected),
            "target": .string("\(machine.settings.target)"), "attempts": .int(counters.attempts),
            "connections": .int(counters.connections), "pairings": .int(counters.pairings),
            "frames_received": .int(received.frames), "frames_sent": .int(counters.framesSent),
            "frames_dropped": .int(received.dropped), "frames_empty": .int(received.empty),
            "bytes_received": .int(received.bytes), "bytes_sent": .int(counters.bytesSent),
            "writes_failed": .int(counters.writesFailed), "writes_queued": .int(Int64(machine.writesUnderWay)),
            "frames_queued": .int(Int64(up?.inbox.queue.count ?? 0)), "adapter": .string(adapterName),
        ]
        if let peer = up?.peer ?? lastPeer {
            object["address"] = .string("\(peer.address)")
            object["name"] = .string(peer.name)
            object["bonded"] = .bool(peer.isBonded)
            if let rssi = peer.rssi { object["rssi"] = .int(Int64(rssi)) }
        }
        if let up, let limit = up.description?.maximumWriteLength {
            object["mtu"] = .int(Int64(limit + 3))
            object["up_seconds"] = .int((loop.now - up.since).components.seconds)
        }
        if !link.isEmpty { object["link"] = .object(link) }
        if let lastError {
            object["last_error"] = .string(lastError.code.slug)
            object["last_error_text"] = .string(lastError.message)
        }
        return .object(object)
    }
}
