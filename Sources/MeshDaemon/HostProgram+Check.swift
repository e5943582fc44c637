// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshConfig
internal import MeshTransportAPI

/// `check`.
extension HostProgram {
    func check() -> ExitStatus {
        let examined = withCatalog { catalog in
            let reading = source.read(catalog)
            return Self.asOwner(ofStateOf: reading) { source.examined(reading, catalog, for: .check) }
        }
        if options.isJSON {
            Terminal.write([
                "schema": "meshhost.check/1", "ok": .bool(examined.config != nil),
                "diagnostics": .array(examined.diagnostics.map(\.json)),
            ])
        } else {
            if !examined.diagnostics.isEmpty { Terminal.complain(examined.diagnostics.rendered()) }
            if let config = examined.config, !options.isQuiet {
                Terminal.write("ok: \(config.summary)\n")
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
