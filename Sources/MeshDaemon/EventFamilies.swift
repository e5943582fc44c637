// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// The families of all events, as the page "Events" of the handbook has them; Tests/Checks/handbook compares the two.
enum EventFamilies {
    static let all = [
        "ack", "adapter", "advert", "bus", "client", "config", "contacts", "daemon", "frame", "intent", "link",
        "listen",
        "login", "message", "module", "path", "radio", "share", "status", "telemetry", "trace",
    ]

    /// Throws for a type that no event can ever have: who waits for it would wait for ever.
    static func check(_ types: [String]) throws(MeshError) {
        for type in types {
            let family = String(type.prefix { $0 != "." })
            guard !all.contains(family) else { continue }
            let near = NearestName.of(family, among: all).map { "; did you mean \"\($0)\"?" } ?? ""
            throw MeshError(.invalidArgument, "there are no events of type \"\(type)\"\(near)")
        }
    }
}
