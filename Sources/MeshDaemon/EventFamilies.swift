// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// The types of all events, as the page "Events" of the handbook has them; Tests/Checks/handbook compares the two.
enum EventFamilies {
    static let types = [
        "ack", "adapter.off", "adapter.on", "advert", "bus.dropped", "bus.gap", "client.join", "client.leave",
        "client.refused", "config.reload", "contacts", "daemon.loss", "daemon.ready",
        "daemon.recovered", "daemon.trouble", "frame.rx", "frame.tx", "intent.changed",
        "link.bytes-skipped", "link.connecting", "link.down", "link.frames-dropped", "link.phase", "link.ready",
        "link.unended", "link.up", "link.waiting", "listen.ready", "login", "message.channel", "message.data",
        "message.direct", "message.sent", "message.waiting", "module.crash", "module.loaded", "module.refused", "path",
        "radio.info", "share.closed", "share.listening", "status", "telemetry", "trace",
    ]

    /// What stands before the dot, each once.
    static let all: [String] = {
        var names: Set<String> = []
        return types.map(family).filter { names.insert($0).inserted }
    }()

    private static func family(_ type: String) -> String { String(type.prefix { $0 != "." }) }

    /// Throws for a type that no event can ever have: who waits for it would wait for ever.
    static func check(_ types: [String]) throws(MeshError) {
        for type in types where !all.contains(type) && !Self.types.contains(type) {
            let family = family(type)
            let own = Self.types.filter { $0.hasPrefix("\(family).") }
            let advice: String
            if let near = NearestName.of(type, among: own.isEmpty ? all : own + all) {
                advice = "did you mean \"\(near)\"?"
            } else if own.isEmpty {
                advice =
                    NearestName.of(family, among: all).map { "did you mean \"\($0)\"?" }
                    ?? "there are \(all.joined(separator: ", "))"
            } else {
                advice = "there are \(own.joined(separator: ", "))"
            }
            throw MeshError(.invalidArgument, "there are no events of type \"\(type)\"; \(advice)")
        }
    }
}
