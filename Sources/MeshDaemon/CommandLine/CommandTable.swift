// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// Every command: what the parser takes, the help tells and shells complete.
enum CommandTable {
    /// In the order of the help.
    static let all: [CommandSyntax] = host + devices + air + bytes + program

    /// Every option once.
    static let options: [CommandOption] = {
        var names: Set<String> = []
        return all.flatMap(\.options).filter { names.insert($0.name).inserted }
    }()

    /// First words, each once.
    static var verbs: [String] {
        var names: Set<String> = []
        return all.map { $0.words[0] }.filter { names.insert($0).inserted }
    }

    /// The command that these words begin with.
    static func syntax(of words: [String]) throws(UsageError) -> CommandSyntax {
        let words =
            words.first == "decode" || words.first == "encode" ? words.replacing(1, "frame", "companion") : words
        let family = all.filter { $0.words[0] == words.first }
        if let found = family.first(where: { $0.words.count == 2 && words.starts(with: $0.words) }) { return found }
        if let found = family.first(where: { $0.words.count == 1 }) { return found }
        guard let first = words.first, !family.isEmpty else {
            let near = NearestName.of(words.first ?? "", among: verbs).map { "; did you mean \($0)?" } ?? ""
            throw UsageError(message: "unknown command \"\(words.first ?? "")\"\(near)")
        }
        let seconds = family.map { $0.words[1] }
        guard words.count > 1, family.count > 1 else {
            let forms = family.map { "`meshhost \($0.synopsis)`" }.joined(separator: " or ")
            let form = family.count > 2 ? "`meshhost \(first) \(seconds.joined(separator: "|"))`" : forms
            throw UsageError(message: "\(first): say \(form)", topic: first)
        }
        throw UsageError.unknown(words[1], in: first, of: seconds)
    }
}

extension [String] {
    fileprivate func replacing(_ index: Int, _ old: String, _ new: String) -> [String] {
        guard indices.contains(index), self[index] == old else { return self }
        var words = self
        words[index] = new
        return words
    }
}
