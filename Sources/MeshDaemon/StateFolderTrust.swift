// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// Who may change what lies in the state folder: keys of paired radios, intents, messages. As ssh does with its folder, one
/// that belongs to another user, or that everybody may write to, is refused.
struct StateFolderTrust {
    /// Whose the folder may be, besides root's.
    var user = geteuid()
    var group = getegid()

    /// What makes the folder unusable, or is worth a warning, and what to do.
    struct Doubt: Equatable {
        var isRefusal: Bool
        var message: String
        var advice: String
    }

    /// Looks at a folder that is there.
    func doubts(_ path: String) throws(SystemError) -> [Doubt] {
        guard let facts = try PathFacts(path) else { return [] }
        var doubts: [Doubt] = []
        if facts.owner != user, facts.owner != 0 {
            doubts.append(
                Doubt(
                    isRefusal: true, message: "\(path) belongs to uid \(facts.owner), and this is uid \(user)",
                    advice: "run it as that user, or: chown -R \(user) \(path)"))
        }
        if facts.mode & S_IWOTH != 0 {
            doubts.append(
                Doubt(
                    isRefusal: true, message: "everybody may write to \(path) (mode \(facts.octalMode))",
                    advice: "run: chmod go-w \(path)"))
        } else if facts.mode & S_IWGRP != 0, facts.group != group {
            doubts.append(
                Doubt(
                    isRefusal: false, message: "gid \(facts.group) may write to \(path) (mode \(facts.octalMode))",
                    advice: "run: chmod g-w \(path)"))
        }
        return try doubts + self.doubts(replacing: path, in: PathFacts.folder(of: Self.resolved(path)))
    }

    /// Looks at a folder and those above it: who may write to one of them may put another folder in the place of `path`
    /// below. In a sticky one, such as /tmp, only owners may.
    func doubts(replacing path: String, in folder: String) throws(SystemError) -> [Doubt] {
        var doubts: [Doubt] = []
        var parts = try Self.resolved(folder).split(separator: "/")
        while true {
            let folder = "/" + parts.joined(separator: "/")
            if let facts = try PathFacts(folder), facts.mode & S_IWOTH != 0, facts.mode & S_ISVTX == 0 {
                doubts.append(
                    Doubt(
                        isRefusal: true,
                        message:
                            "everybody may write to \(folder) (mode \(facts.octalMode)), and put another folder in "
                            + "the place of \(path)", advice: "run: chmod o-w \(folder)"))
            }
            if parts.popLast() == nil { return doubts }
        }
    }

    /// The path without symbolic links.
    private static func resolved(_ path: String) throws(SystemError) -> String {
        guard let real = realpath(path, nil) else { throw SystemError(number: errno) }
        defer { free(real) }
        return String(cString: real)
    }
}
