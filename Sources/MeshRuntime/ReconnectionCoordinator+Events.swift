// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI

extension ReconnectionCoordinator {
    /// Puts what happened to a link on the bus and, one line per change, in the log.
    func tell(_ report: LinkReport, of name: String) {
        let (type, members, line) = event(of: report)
        events.publish(type, device: name, .json(.object(members)))
        // A fault in the program is loud; what a person has to mend is told once; the rest is normal life.
        let level: LogLevel =
            switch report {
            case .waiting(.blocked(let error), _): error.disposition == .fatal ? .error : .warning
            case .unended: .error
            case .connecting, .up: .debug
            case .intentChanged, .ready, .down, .waiting: .info
            }
        log(level, line, [("device", name)] + members.sorted { $0.key < $1.key }.map { ($0.key, $0.value.fieldText) })
    }

    func tellAdapter(_ name: String, isAvailable: Bool) {
        events.publish(isAvailable ? "adapter.on" : "adapter.off", .json(["adapter": .string(name)]))
        log(.info, isAvailable ? "the adapter is back" : "the adapter is away", [("adapter", name)])
    }

    private func event(of report: LinkReport) -> (type: EventType, members: [String: JSONValue], line: String) {
        switch report {
        case .intentChanged(let intent):
            var members: [String: JSONValue] = ["intent": .string(intent.name)]
            if case .release(let until?) = intent { members["for_ms"] = (until - loop.now).millisecondsValue }
            return ("intent.changed", members, "the intent changed")
        case .connecting(let attempt, let generation):
            return (
                "link.connecting", ["attempt": .int(Int64(attempt)), "generation": .int(Int64(clamping: generation))],
                "connecting"
            )
        case .up(let generation):
            return ("link.up", ["generation": .int(Int64(clamping: generation))], "the link is up")
        case .ready(let generation):
            return ("link.ready", ["generation": .int(Int64(clamping: generation))], "the device is ready")
        case .down(let reason, let phase, let generation):
            var members: [String: JSONValue] = [
                "phase": .string(phase.rawValue), "generation": .int(Int64(clamping: generation)),
            ]
            members.merge(reason.members) { $1 }
            return ("link.down", members, phase == .ready ? "the link is down" : "the attempt failed")
        case .waiting(let reason, let remaining):
            var members: [String: JSONValue] = [
                "why": .string(reason.slug), "text": .string(reason.description),
                "for_ms": remaining?.millisecondsValue ?? .null,
            ]
            members.merge(reason.error.members) { $1 }
            return ("link.waiting", members, "waiting")
        case .unended(let generation):
            return (
                "link.unended", ["generation": .int(Int64(clamping: generation))],
                "the transport does not end what was cancelled; nothing is tried until it does"
            )
        }
    }
}

extension MeshError? {
    /// Code and message as members of an event's data; none where there is no error.
    fileprivate var members: [String: JSONValue] {
        guard let self else { return [:] }
        return [
            "code": .string(self.code.slug), "message": .string(self.message),
            "disposition": .string(self.disposition.rawValue),
        ]
    }
}

extension Duration {
    /// Whole milliseconds, rounded down; 0 for what is past.
    fileprivate var millisecondsValue: JSONValue {
        let (seconds, attoseconds) = max(.zero, self).components
        return .int(Int64(clamping: Int128(seconds) * 1_000 + Int128(attoseconds / 1_000_000_000_000_000)))
    }
}

extension JSONValue {
    /// A log field: text as it is, the rest as JSON.
    fileprivate var fieldText: String { stringValue ?? text() }
}
