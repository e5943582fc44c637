// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshConfig

/// The state folder, and where sockets lie.
extension StartExamination {
    /// The folder of the default control socket. systemd makes it when the service starts, and removes it afterwards.
    private static let serviceFolder = PathFacts.folder(of: DaemonConfig().controlSocket)
    /// What the daemon keeps there and has to be able to write.
    private static let stateFiles = ["lock", "intents.json", "journal.db", "journal.db.lock"]

    private static let stateKey = "state_dir"
    private static let otherPath = "choose another path"

    // MARK: State

    mutating func examineState(_ path: String, _ requirement: ConfigRequirement) {
        if let otherUser {
            return find(
                .stateFolderUnusable, Self.stateKey, requirement, "\(path) belongs to uid \(otherUser)",
                advice: "ask as that user, or as root", verdict: .unseen)
        }
        do throws(SystemError) {
            guard let facts = try PathFacts(path) else { return try examineBirthplace(of: path, requirement) }
            guard facts.kind == .folder else { return refuseState(requirement, "\(path) is not a folder") }
            for doubt in try StateFolderTrust().doubts(path) { tell(doubt, requirement) }
            if let obstacle = PathFacts.obstacle(to: R_OK | W_OK | X_OK, path) {
                return refuseState(requirement, "\(path): \(obstacle.text)", isPermission: obstacle.isPermission)
            }
            for name in Self.stateFiles { try examineStateFile("\(path)/\(name)", requirement) }
        } catch {
            refuseState(requirement, "\(path): \(error.text)", isPermission: error.isPermission)
        }
    }

    /// The folder in which a missing state folder will be made.
    private mutating func examineBirthplace(
        of path: String, _ requirement: ConfigRequirement
    ) throws(SystemError) {
        var place = path
        var facts: PathFacts?
        repeat {
            place = PathFacts.folder(of: place)
            facts = try PathFacts(place)
        } while facts == nil && place != "/"
        guard facts?.kind == .folder else {
            return refuseState(requirement, "\(path) cannot be made: \(place) is not a folder")
        }
        if let obstacle = PathFacts.obstacle(to: W_OK | X_OK, place) {
            return refuseState(
                requirement, "\(path) cannot be made in \(place): \(obstacle.text)", isPermission: obstacle.isPermission
            )
        }
        for doubt in try StateFolderTrust().doubts(replacing: path, in: place) { tell(doubt, requirement) }
    }

    private mutating func examineStateFile(
        _ path: String, _ requirement: ConfigRequirement
    ) throws(SystemError) {
        guard let facts = try PathFacts(path, followsLink: false) else { return }
        if facts.kind != .file {
            refuseState(requirement, "\(path) is not a file", advice: "move it away")
        } else if let obstacle = PathFacts.obstacle(to: R_OK | W_OK, path) {
            refuseState(
                requirement, "\(path): \(obstacle.text)",
                advice: "it belongs to uid \(facts.owner); run: chown \(geteuid()) \(path)",
                isPermission: obstacle.isPermission)
        }
    }

    private mutating func tell(_ doubt: StateFolderTrust.Doubt, _ requirement: ConfigRequirement) {
        find(
            .stateFolderUnusable, Self.stateKey, requirement, doubt.message, advice: doubt.advice,
            verdict: doubt.isRefusal ? .unsafe : .doubtful)
    }

    private mutating func refuseState(
        _ requirement: ConfigRequirement, _ reason: String, advice: String = "name a folder of this user",
        isPermission: Bool = false
    ) {
        find(
            .stateFolderUnusable, Self.stateKey, requirement, reason, advice: advice, isPermission: isPermission)
    }

    // MARK: Sockets

    mutating func examineSocket(_ path: String, _ requirement: ConfigRequirement, key: String) {
        let folder = PathFacts.folder(of: path)
        do throws(SystemError) {
            guard let facts = try PathFacts(folder) else {
                return examineMissingFolder(folder, of: path, requirement, key: key)
            }
            if facts.kind != .folder {
                return find(
                    .addressUnusable, key, requirement, "\(folder) is not a folder", advice: Self.otherPath)
            }
            if let obstacle = PathFacts.obstacle(to: W_OK | X_OK, folder) { throw obstacle }
            if let there = try PathFacts(path, followsLink: false), there.kind != .socket {
                find(
                    .addressUnusable, key, requirement, "\(path) is a file that is no socket",
                    advice: "move it away, or \(Self.otherPath)")
            }
        } catch {
            find(
                .addressUnusable, key, requirement, "no socket can be made in \(folder): \(error.text)",
                advice: "let uid \(geteuid()) write there, or \(Self.otherPath)", isPermission: error.isPermission)
        }
    }

    private mutating func examineMissingFolder(
        _ folder: String, of path: String, _ requirement: ConfigRequirement, key: String
    ) {
        if isMadeAtStart(folder) { return }
        let isOfService = folder == Self.serviceFolder
        if isOfService, purpose == .check { return }
        let advice = isOfService ? "systemd makes it for the service; else make it" : "make it"
        find(
            .addressUnusable, key, requirement, "the folder \(folder) does not exist",
            advice: "\(advice), or \(Self.otherPath)")
    }

    // MARK: Ports

    mutating func examinePort(_ port: UInt16, _ requirement: ConfigRequirement) {
        guard port != 0, port < Self.firstOpenPort, !Self.mayBindAll else { return }
        find(
            .addressUnusable, "listen", requirement, "this user may not listen on port \(port)",
            advice: "choose a port from \(Self.firstOpenPort) on, or give the service CAP_NET_BIND_SERVICE",
            isPermission: true, verdict: purpose == .check ? .unseen : .unusable)
    }

    /// The first port that everybody may listen on (ip(7)).
    private static var firstOpenPort: UInt16 {
        let written = firstLine(of: "/proc/sys/net/ipv4/ip_unprivileged_port_start") { _ in true }
        return written.flatMap { UInt16($0) } ?? 1_024
    }

    /// Whether this process has CAP_NET_BIND_SERVICE, bit 10 of its effective capabilities (capabilities(7)).
    private static var mayBindAll: Bool {
        let prefix = "CapEff:"
        let line = firstLine(of: "/proc/self/status") { $0.hasPrefix(prefix) }
        let digits = line?.dropFirst(prefix.count).drop { $0 == "\t" || $0 == " " }
        return digits.flatMap { UInt64($0, radix: 16) }.map { $0 & 1 << 10 != 0 } ?? false
    }

    private static func firstLine(of path: String, where isWanted: (String) -> Bool) -> String? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 512)
        while fgets(&line, Int32(line.count), file) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            let bare = text.hasSuffix("\n") ? String(text.dropLast()) : text
            if isWanted(bare) { return bare }
        }
        return nil
    }
}
