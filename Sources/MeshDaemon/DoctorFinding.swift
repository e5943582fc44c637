// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// A finding, and what it is about: `config`, `daemon`, `modules`, `device`, or the module that has found it.
struct DoctorFinding: Equatable, Sendable {
    var area: String
    var finding: Finding

    init(area: String, finding: Finding) {
        self.area = area
        self.finding = finding
    }

    init(_ area: String, _ severity: Finding.Severity, _ subject: String, _ message: String, advice: String? = nil) {
        self.init(area: area, finding: Finding(severity, subject, message, advice: advice))
    }

    var json: JSONValue {
        var members = finding.json.objectValue ?? [:]
        members["area"] = .string(area)
        return .object(members)
    }

    init?(_ json: JSONValue) {
        guard let finding = Finding(json) else { return nil }
        self.init(area: json["area"]?.stringValue ?? "", finding: finding)
    }

    /// A document with these findings, and whether none is a problem.
    static func document(_ schema: String, _ findings: [DoctorFinding]) -> JSONValue {
        [
            "schema": .string(schema), "ok": .bool(isFine(findings)), "findings": .array(findings.map(\.json)),
        ]
    }

    static func isFine(_ findings: [DoctorFinding]) -> Bool {
        findings.allSatisfy { $0.finding.severity != .problem }
    }
}
