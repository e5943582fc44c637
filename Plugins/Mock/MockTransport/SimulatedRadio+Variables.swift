// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshWire

/// Custom variables. Firmware has those of its sensors, such as `gps`. These make a simulated radio do something, once:
///
/// | `SET_CUSTOM_VAR` | |
/// |---|---|
/// | `messages:N` | N numbered messages arrive, by turns from a contact and on channel 0 |
/// | `silent:MS` | nothing is answered or pushed for MS milliseconds; then all that is due comes at once |
/// | `stray:MS` | in MS milliseconds comes an OK that nobody asked for, as if another interface had been answered |
/// | `away:MS` | the link drops, and the radio is out of reach for MS milliseconds |
extension SimulatedRadio {
    /// CUSTOM_VARS: `name:value,name:value`.
    var customVariables: [UInt8] {
        [0x15] + Array(variables.map { "\($0.name):\($0.value)" }.joined(separator: ",").utf8)
    }

    mutating func setCustomVariable(_ reader: inout ByteReader, now: Duration) throws(DecodeError) -> [[UInt8]] {
        guard reader.remaining >= 3 else { throw DecodeError(.truncated(missing: 1), offset: reader.offset) }
        let parts = reader.readText().split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return [SimulatedFrame.error(.illegalArgument)] }
        if let index = variables.firstIndex(where: { $0.name == parts[0] }) {
            variables[index].value = String(parts[1])
            return [SimulatedFrame.ok]
        }
        guard let count = Int(parts[1]), (1...3_600_000).contains(count) else {
            return [SimulatedFrame.error(.illegalArgument)]
        }
        let time = Duration.milliseconds(count)
        switch parts[0] {
        case "messages":
            guard count <= Self.messageQueueLimit else { return [SimulatedFrame.error(.illegalArgument)] }
            for _ in 0..<count {
                for case .sendFrame(let frame) in messageArrives(now: now) { follow(with: .push(frame)) }
            }
        case "silent": follow(with: .silence(time))
        case "stray": follow(with: .push(SimulatedFrame.ok), in: time)
        case "away": follow(with: .away(time))
        default: return [SimulatedFrame.error(.illegalArgument)]
        }
        return [SimulatedFrame.ok]
    }

    /// A message that differs from all before it.
    mutating func messageArrives(now: Duration) -> [Output] {
        let text = "Message \(arrivals)"
        defer { arrivals += 1 }
        let people = contacts.filter { $0.kind == .chat }
        if !people.isEmpty, arrivals % 2 == 0 || channels[0] == nil {
            let sender = people[arrivals / 2 % people.count]
            return directMessageArrived(from: sender.prefix, type: 0, text: text, now: now)
        }
        return channelMessageArrived(on: 0, text: "\(people.first?.name ?? "Nobody"): \(text)", now: now)
    }
}
