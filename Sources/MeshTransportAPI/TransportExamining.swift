// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A factory that can look whether what its links need is there.
public protocol TransportExamining: TransportFactory {
    /// What is right and wrong with what these devices' links go through, and with the devices as far as that can be seen
    /// without a link. Changes nothing and disturbs no link.
    func examine(_ devices: [TransportSettings]) async -> [Finding]
}

/// One thing that was looked at.
public struct Finding: Sendable, Hashable {
    public enum Severity: String, Sendable, Hashable, CaseIterable {
        case ok
        /// Works, but somebody should know.
        case note
        /// Links will fail because of it.
        case problem
    }

    public var severity: Severity
    /// What was looked at, such as `hci0` or a device's name.
    public var subject: String
    /// What was found.
    public var message: String
    /// The next step; nil where nothing is to be done.
    public var advice: String?

    public init(_ severity: Severity, _ subject: String, _ message: String, advice: String? = nil) {
        self.severity = severity
        self.subject = subject
        self.message = message
        self.advice = advice
    }
}

extension Finding {
    /// The finding as it crosses the module boundary and the control socket.
    public var json: JSONValue {
        [
            "severity": .string(severity.rawValue), "subject": .string(subject), "message": .string(message),
            "advice": advice.map { .string($0) } ?? .null,
        ]
    }

    /// Reads what ``json`` gives; nil when there is no message. A severity that is not known is a note.
    public init?(_ json: JSONValue) {
        guard let message = json["message"]?.stringValue else { return nil }
        self.init(
            json["severity"]?.stringValue.flatMap(Severity.init(rawValue:)) ?? .note,
            json["subject"]?.stringValue ?? "", message, advice: json["advice"]?.stringValue)
    }
}
