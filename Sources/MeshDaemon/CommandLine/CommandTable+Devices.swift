// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

extension CommandTable {
    /// Devices, and who uses them.
    static let devices: [CommandSyntax] = [
        CommandSyntax(
            words: ["status"], summary: "how the daemon itself is, and what is wrong with it",
            details: """
                Exit status: 0 nothing is wrong, 69 something is.
                """,
            ownOptions: CommandOption.ofDaemon + [.json, .quiet("the exit status alone")],
            examples: ["status", "status --json"],
            make: { _ in .status }),
        CommandSyntax(
            words: ["devices"], summary: "all devices with their links",
            ownOptions: CommandOption.ofDaemon + [.json],
            examples: ["devices", "devices --json"],
            make: { _ in .devices }),
        CommandSyntax(
            words: ["device"], operands: "NAME [\(deviceVerbs.joined(separator: "|"))]", operandCount: 1...2,
            offer: .words(deviceVerbs),
            summary: "one device with its link, or whether that is wanted",
            details: """
                status       shows it; so does no word
                connect      the link is wanted
                disconnect   it is not, until `connect`
                release      it is left to another program, for --for or until `connect`
                reconnect    it is made anew

                What is said holds over restarts. It returns when that is on disk, not when the link is up.
                """,
            ownOptions: [CommandOption(name: "--for", value: "TIME", help: "of release: for so long, such as 10m")]
                + CommandOption.ofDaemon + [.json, .quiet("no output but errors; not of status")],
            examples: ["device roof", "device roof release --for 10m", "device roof connect"],
            make: device),
        CommandSyntax(
            words: ["clients"], summary: "who is connected to the shares",
            ownOptions: CommandOption.ofDaemon + [.json],
            examples: ["clients"],
            make: { _ in .clients }),
        CommandSyntax(
            words: ["listen"], operands: "[DEVICE]", operandCount: 0...1,
            summary: "events as JSON lines",
            details: """
                The first line is {"type":"listen.ready"}: from there on nothing is missed. Ends when the daemon does.
                """,
            ownOptions: [
                CommandOption(
                    name: "--type", value: "TYPE[,TYPE]...", isRepeatable: true,
                    help: "these types or families only, such as link,advert; repeatable",
                    offer: .words(EventFamilies.all)),
                CommandOption(name: "--since", value: "SEQ", help: "what came after this number first"),
                CommandOption(name: "--count", value: "N", help: "end after N events"),
            ] + CommandOption.ofDaemon,
            hints: [
                "--json": "what it prints is JSON always", "--jsonl": "what it prints is lines of JSON always",
                "--quiet": "say with --type what to tell", "--for": "--count ends it",
            ],
            examples: ["listen", "listen roof --type link,message --count 10"],
            make: listen),
    ]

    private static let deviceVerbs = ["status", "connect", "disconnect", "release", "reconnect"]

    private static func device(_ words: CommandWords) throws(UsageError) -> HostCommand {
        let name = words.operands[0]
        let verb = words.operands.dropFirst().first ?? "status"
        guard deviceVerbs.contains(verb) else { throw UsageError.unknown(verb, in: "device \(name)", of: deviceVerbs) }
        let time = try words.duration("--for", such: "10m")
        if time != nil, verb != "release" {
            throw UsageError(message: "device \(name) \(verb) has no --for, which goes with release")
        }
        if verb == "status", words.has("--quiet") {
            throw UsageError(message: "device \(name) status has no --quiet: it would show nothing")
        }
        return switch verb {
        case "connect": .device(name: name, .connect)
        case "disconnect": .device(name: name, .disconnect)
        case "release": .device(name: name, .release(for: time))
        case "reconnect": .device(name: name, .reconnect)
        default: .device(name: name, .status)
        }
    }

    private static func listen(_ words: CommandWords) throws(UsageError) -> HostCommand {
        let types = words.all("--type").flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
        guard !types.contains(where: \.isEmpty) else {
            throw UsageError(message: "--type: a type is empty; write types or families, such as link,advert")
        }
        return .listen(
            HostCommand.ListenOptions(
                device: words.operands.first, types: types.map(String.init), since: try words.number("--since"),
                count: try words.number("--count").map { Int(clamping: $0) }))
    }
}

extension UsageError {
    /// A word that a command does not know.
    static func unknown(_ word: String, in command: String, of known: [String]) -> UsageError {
        let near = NearestName.of(word, among: known).map { "; did you mean \($0)?" }
        return UsageError(
            message: "\(command): unknown word \"\(word)\"\(near ?? "; say one of \(known.joined(separator: ", "))")",
            topic: command)
    }
}
