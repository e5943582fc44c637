// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// What is wrong with the daemon itself, as opposed to its links. Pure.
struct TroubleBook {
    /// What the daemon needs and may have to do without.
    enum Topic: String, CaseIterable {
        /// The messages that are kept.
        case journal
        /// Descriptors: every connection and every file is one.
        case descriptors
        /// The file of a Unix socket.
        case socket
    }

    /// One thing that is wrong.
    struct Trouble: Equatable {
        var topic: Topic
        /// What exactly, such as a path.
        var subject: String
        var error: MeshError
        /// On the loop's clock.
        var since: Duration
        /// Nothing is wrong any more, but something has been lost: it is shown until the daemon ends.
        var isPast = false

        static func == (left: Trouble, right: Trouble) -> Bool {
            left.topic == right.topic && left.subject == right.subject && left.error.code == right.error.code
                && left.since == right.since && left.isPast == right.isPast
        }
    }

    /// In the order in which they began.
    private(set) var all: [Trouble] = []

    /// Whether something is wrong at present.
    var isTroubled: Bool { all.contains { !$0.isPast } }

    /// Something is wrong. Whether that is news; what is known already gets the newest reason.
    mutating func began(_ topic: Topic, _ subject: String, _ error: MeshError, now: Duration) -> Bool {
        if let index = index(topic, subject) {
            all[index].error = error
            return false
        }
        all.append(Trouble(topic: topic, subject: subject, error: error, since: now))
        return true
    }

    /// It is as it should be again. What was wrong, if anything was.
    mutating func ended(_ topic: Topic, _ subject: String) -> Trouble? {
        index(topic, subject).map { all.remove(at: $0) }
    }

    /// Something was lost that nothing brings back. The latest of its kind is enough.
    mutating func happened(_ topic: Topic, _ subject: String, _ error: MeshError, now: Duration) {
        all.removeAll { $0.isPast && $0.topic == topic && $0.subject == subject }
        all.append(Trouble(topic: topic, subject: subject, error: error, since: now, isPast: true))
    }

    private func index(_ topic: Topic, _ subject: String) -> Int? {
        all.firstIndex { $0.topic == topic && $0.subject == subject && !$0.isPast }
    }
}

extension TroubleBook.Trouble {
    /// What events have of it.
    var facts: [String: JSONValue] {
        [
            "about": .string(topic.rawValue), "subject": .string(subject), "code": .string(error.code.slug),
            "message": .string(error.message),
        ]
    }

    /// What `status` has of it.
    func json(now: Duration) -> JSONValue {
        .object(facts.merging(["for_ms": .int((now - since).milliseconds), "past": .bool(isPast)]) { $1 })
    }
}
