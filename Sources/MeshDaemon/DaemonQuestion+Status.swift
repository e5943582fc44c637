// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// `status`: how the daemon itself is.
extension DaemonQuestion {
    /// Shows the daemon's answer. The status is not 0 while something is wrong, as with `doctor`.
    func showStatus(_ answer: JSONValue) -> ExitStatus {
        let findings = Doctor.findings(troubles: answer["troubles"]?.arrayValue ?? [])
        if options.isJSON {
            Terminal.write(answer)
        } else {
            if !options.isQuiet { Terminal.write(Self.line(status: answer) + "\n") }
            Terminal.write(Doctor.text(findings))
        }
        return DoctorFinding.isFine(findings) ? .ok : .unavailable
    }

    /// One line without troubles.
    static func line(status: JSONValue) -> String {
        let uptime = Duration.milliseconds(status["up_ms"]?.intValue ?? 0)
        let descriptors = status["descriptors"]
        return "meshhost \(text(status["version"])), up \(roughly(uptime)): "
            + "\(text(status["devices_ready"]))/\(text(status["devices"])) devices ready, "
            + "\(text(status["clients"])) clients, "
            + "\(text(descriptors?["open"])) of \(text(descriptors?["limit"])) descriptors"
    }

    /// Two units are enough: `3d 4h`, `5m 0s`.
    static func roughly(_ time: Duration) -> String {
        let seconds = max(0, time.components.seconds)
        let parts = [
            (seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s"),
        ]
        let first = parts.firstIndex { $0.0 > 0 } ?? 3
        return parts[first..<min(first + 2, 4)].map { "\($0.0)\($0.1)" }.joined(separator: " ")
    }
}
