// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// An option of a command: declared once, for the parser, the help and the completion of shells.
struct CommandOption: Sendable {
    /// What a shell may offer in the place of a word.
    enum Offer: Sendable, Equatable {
        case nothing
        case files
        case words([String])
    }

    /// With its dashes.
    var name: String
    var short: String?
    /// What stands for its value in the help; nil: it takes none. The same name takes a value with every command or with none.
    var value: String?
    var isRepeatable = false
    var help: String
    var offer = Offer.nothing

    /// As the help shows it: `-c, --config FILE`.
    var synopsis: String {
        (short.map { "\($0), " } ?? "    ") + name + (value.map { " \($0)" } ?? "")
    }
}

extension CommandOption {
    static let help = CommandOption(name: "--help", short: "-h", help: "this text")
    static let config = CommandOption(
        name: "--config", short: "-c", value: "FILE", isRepeatable: true,
        help: "config file; repeatable; then /etc/meshhost is not read", offer: .files)
    static let set = CommandOption(
        name: "--set", value: "KEY=VALUE", isRepeatable: true,
        help: "override one key, such as daemon.log_level=debug; repeatable")
    static let control = CommandOption(
        name: "--control", value: "PATH", help: "control socket of the running daemon (or MESHHOST_CONTROL)",
        offer: .files)
    static let json = CommandOption(name: "--json", help: "one JSON document instead of text")
    static let lines = CommandOption(name: "--jsonl", help: "lines of JSON as they come")
    static let secrets = CommandOption(name: "--secrets", help: "show keys, PINs and passwords, too")

    static func quiet(_ help: String) -> CommandOption {
        CommandOption(name: "--quiet", short: "-q", help: help)
    }

    /// Where the config is.
    static let ofConfig = [config, set]
    /// Where the daemon is: its socket, or the config that says where its socket is.
    static let ofDaemon = [control, config, set]
}
