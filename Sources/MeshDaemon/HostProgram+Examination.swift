// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshConfig
internal import MeshTransportAPI

/// The config and what it relies on, for `check` and for `run`.
extension HostProgram {
    /// What there is to say of a config.
    struct Examined {
        /// Nil when the host does not start with it.
        var config: HostConfig?
        var diagnostics: [ConfigDiagnostic]
        var status: ExitStatus
    }

    func examined(_ reading: ConfigReading, for purpose: StartExamination.Purpose) -> Examined {
        let findings = StartExamination(purpose, of: reading.requirements, environment: environment).findings
        let status = reading.config == nil ? .configuration : findings.status
        return Examined(
            config: status == nil ? reading.config : nil,
            diagnostics: reading.diagnostics(and: findings.map(\.diagnostic)),
            status: status ?? .ok)
    }

    func check() -> ExitStatus {
        let reading = withCatalog { source.read($0) }
        let examined = Self.asOwner(ofStateOf: reading) { self.examined(reading, for: .check) }
        if options.isJSON {
            Terminal.write([
                "schema": "meshhost.check/1", "ok": .bool(examined.config != nil),
                "diagnostics": .array(examined.diagnostics.map(\.json)),
            ])
        } else {
            if !examined.diagnostics.isEmpty { Terminal.complain(examined.diagnostics.rendered()) }
            if let config = examined.config, !options.isQuiet {
                Terminal.write("ok: \(config.devices.count) devices, \(config.shares.count) shares\n")
            }
        }
        return examined.status
    }

    /// What root asks is asked for the service: looks with the eyes of the user whose state folder it is. Root itself may
    /// read every secret, also one that the daemon may not.
    private static func asOwner<Result>(ofStateOf reading: ConfigReading, _ look: () -> Result) -> Result {
        let folder = reading.requirements.lazy.compactMap { requirement in
            if case .stateFolder(let path) = requirement.thing { path } else { nil }
        }.first
        guard geteuid() == 0, let folder, let facts = try? PathFacts(folder), facts.owner != 0 else { return look() }
        var groups = [gid_t](repeating: 0, count: Int(max(0, getgroups(0, nil))))
        let count = getgroups(Int32(groups.count), &groups)
        guard count >= 0 else { return look() }
        let group = getegid()
        defer {
            seteuid(0)
            setegid(group)
            setgroups(Int(count), groups)
        }
        if let entry = getpwuid(facts.owner) {
            initgroups(entry.pointee.pw_name, entry.pointee.pw_gid)
            setegid(entry.pointee.pw_gid)
        } else {
            setgroups(0, nil)
            setegid(facts.group)
        }
        seteuid(facts.owner)
        return look()
    }
}
