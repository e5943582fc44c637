// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshConfig
internal import MeshTransportAPI

/// Looks at what a config relies on and that is not in it: secrets, certificates, folders of sockets, the state folder.
/// `check` and `run` do it alike, so that what would end a start one by one is told at once.
///
/// Nothing is changed by looking: no file or folder is made, nothing is bound, no name is asked for. So whether an address
/// is free is known only when it is listened on.
struct StartExamination {
    enum Purpose {
        /// The daemon starts now, in this process.
        case start
        /// Somebody asks, maybe of a service that has another environment.
        case check
    }

    let purpose: Purpose
    let environment: [String: String]
    /// Folders below it, and itself, are made before they are needed.
    private let stateFolder: String?
    /// Whose service it is that somebody else asks about; nil where the daemon's user asks, or nobody knows who that is.
    let otherUser: uid_t?
    private(set) var findings: [StartFinding] = []

    /// Looks at all of it.
    init(_ purpose: Purpose, of requirements: [ConfigRequirement], environment: [String: String]) {
        self.purpose = purpose
        self.environment = environment
        stateFolder =
            requirements.lazy.compactMap { requirement in
                if case .stateFolder(let path) = requirement.thing { path } else { nil }
            }.first
        otherUser = purpose == .check ? stateFolder.flatMap(Self.otherUser) : nil
        for requirement in requirements { examine(requirement) }
    }

    /// The owner of a state folder that this user could not be the daemon with.
    private static func otherUser(of folder: String) -> uid_t? {
        guard let facts = try? PathFacts(folder), facts.owner != geteuid() else { return nil }
        // A folder of root's may be lent to a group.
        if facts.owner == 0, PathFacts.obstacle(to: W_OK | X_OK, folder) == nil { return nil }
        return facts.owner
    }

    private mutating func examine(_ requirement: ConfigRequirement) {
        switch requirement.thing {
        case .stateFolder(let path): examineState(path, requirement)
        case .controlSocket(let path): examineSocket(path, requirement, key: "control_socket")
        case .listener(.unix(let path)): examineSocket(path, requirement, key: "listen")
        case .listener(.tcp(_, let port)): examinePort(port, requirement)
        case .certificate(let tls, let keyPosition): examineTLS(tls, keyPosition: keyPosition, requirement)
        case .token(let token): examineToken(token, requirement)
        case .option(let name, let reference): examineOption(name, reference, requirement)
        }
    }

    /// Whether the start itself makes this folder.
    func isMadeAtStart(_ folder: String) -> Bool {
        guard let stateFolder else { return false }
        let made = stateFolder.split(separator: "/")
        return made.starts(with: folder.split(separator: "/"))
    }

    /// Notes what is wrong with what a key asks for. `reason` and `advice` say why, and what to do.
    mutating func find(
        _ kind: ConfigDiagnostic.Code, _ key: String, _ requirement: ConfigRequirement,
        at position: SourcePosition? = nil, _ reason: String, advice: String? = nil, isPermission: Bool = false,
        verdict: Verdict = .unusable
    ) {
        // What this user may not do the daemon's may.
        let isUnknown = isPermission && otherUser != nil
        let verdict = isUnknown ? .unseen : verdict
        let isHarmless = verdict == .doubtful || verdict == .unseen
        findings.append(
            StartFinding(
                diagnostic: ConfigDiagnostic(
                    isHarmless || !requirement.isNeededToStart ? .warning : .error, kind,
                    at: position ?? requirement.position, in: requirement.section, "\"\(key)\" \(verdict.rawValue)",
                    hint: advice.map { "\(reason); \($0)" } ?? reason),
                isPermission: isPermission))
    }
}

/// What is said of a thing that was looked at.
enum Verdict: String {
    case unusable = "cannot be used"
    case unsafe = "is not safe"
    /// As ``unsafe``, and somebody may want it so.
    case doubtful = "may not be safe"
    /// It is somewhere else, or nowhere.
    case unseen = "was not looked at"
}

/// What an examination has found.
struct StartFinding: Equatable {
    var diagnostic: ConfigDiagnostic
    /// Whether it is this user who may not.
    var isPermission: Bool
}

extension [StartFinding] {
    /// How `check` and `run` end with these, if they keep the host from starting.
    var status: ExitStatus? {
        let errors = filter { $0.diagnostic.severity == .error }
        if errors.isEmpty { return nil }
        return errors.allSatisfy(\.isPermission) ? .permission : .configuration
    }
}
