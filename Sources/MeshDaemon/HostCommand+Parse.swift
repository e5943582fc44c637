// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

extension HostCommand {
    /// Reads the words after the program's name. Options may stand anywhere.
    static func parse(_ words: [String]) throws(UsageError) -> (command: HostCommand, options: HostOptions) {
        var scanner = WordScanner(words)
        var options = HostOptions()
        var listen = ListenOptions()
        var decode = DecodeOptions()
        var time: Duration?
        var air = AirWords()
        var positional: [String] = []
        var wantsHelp = false
        var listenWords: [String] = []
        var timeWords: [String] = []
        var decodeWords: [String] = []
        var bridge = BridgeWords()
        while let word = scanner.next() {
            switch word {
            case "--config", "-c": options.configFiles.append(try scanner.value(of: word))
            case "--set": options.assignments.append(try scanner.value(of: word))
            case "--control": options.controlSocket = try scanner.value(of: word)
            case "--json": options.isJSON = true
            case "--quiet", "-q": options.isQuiet = true
            case "--help", "-h": wantsHelp = true
            case "--version": positional.append("version")
            case "--type":
                listen.types += try scanner.value(of: word).split(separator: ",").map(String.init)
                listenWords.append(word)
            case "--since":
                listen.since = try scanner.number(of: word)
                listenWords.append(word)
            case "--count":
                listen.count = Int(clamping: try scanner.number(of: word))
                listenWords.append(word)
            case "--channel":
                decode.channels.append(try scanner.value(of: word))
                decodeWords.append(word)
            case "--request":
                decode.request = try scanner.value(of: word)
                decodeWords.append(word)
            case "--secrets":
                decode.showsSecrets = true
                decodeWords.append(word)
            case "--for":
                let text = try scanner.value(of: word)
                guard let duration = Duration(optionText: text) else {
                    throw UsageError(message: "--for \(text): not a duration; write for example 10m")
                }
                time = duration
                timeWords.append(word)
            case _ where AirWords.names.contains(word):
                try air.take(word) { () throws(UsageError) in try scanner.value(of: word) }
            case _ where BridgeWords.names.contains(word):
                try bridge.take(word) { () throws(UsageError) in try scanner.value(of: word) }
            default:
                if word.hasPrefix("-"), word.count > 1 {
                    let near = NearestName.of(word, among: Self.optionNames).map { "; did you mean \($0)?" } ?? ""
                    throw UsageError(message: "unknown option \(word)\(near)")
                }
                positional.append(word)
            }
        }
        if wantsHelp { return (.help, options) }
        if positional.first == "pair" { air.pin = bridge.removePin() }
        let command = try command(positional, listen, time, decode, bridge, air)
        try air.check(command)
        if case .listen = command {
        } else if let word = listenWords.first {
            throw UsageError(message: "\(word) only goes with listen")
        }
        switch command {
        case .device(_, .release), .scan: break
        default:
            if let word = timeWords.first {
                throw UsageError(message: "\(word) only goes with device NAME release and scan")
            }
        }
        for word in decodeWords where !command.takes(decoding: word) {
            let others =
                word == "--channel" ? " and decode packet" : word == "--secrets" ? ", hci, smp and btsnoop" : ""
            throw UsageError(message: "\(word) only goes with decode companion\(others)")
        }
        if case .decodeRecording = command, options.isJSON {
            throw UsageError(message: "decode btsnoop: a recording may be of any size; say --jsonl")
        }
        if case .bridge = command {
        } else if let word = bridge.first {
            throw UsageError(message: "\(word) only goes with bridge\(word == "--pin" ? " and pair" : "")")
        }
        return (command, options)
    }

    private static let optionNames =
        [
            "--config", "--set", "--control", "--json", "--quiet", "--help", "--version", "--type", "--since",
            "--count", "--for", "--channel", "--request", "--secrets",
        ] + BridgeWords.names + AirWords.names

    private static let commandNames = [
        "run", "check", "config", "modules", "status", "devices", "device", "clients", "listen", "reload", "decode",
        "encode",
        "bridge", "version", "help", "scan", "pair", "unpair", "doctor",
        "hci", ModuleTestOptions.word,
    ]

    private static func command(
        _ words: [String], _ listen: ListenOptions, _ time: Duration?, _ decode: DecodeOptions, _ bridge: BridgeWords,
        _ air: AirWords
    ) throws(UsageError) -> HostCommand {
        let rest = Array(words.dropFirst())
        switch words.first {
        case nil: return .help
        case "run": return try alone(.run, rest)
        case "check": return try alone(.check, rest)
        case "config":
            switch rest {
            case ["show"]: return .configShow
            case ["schema"]: return .configSchema
            default: throw UsageError(message: "config: say `config show` or `config schema`")
            }
        case "modules":
            if rest == ["list"] { return .modules }
            if rest.first == "reset" {
                if rest.count > 2 { throw UsageError(message: "modules reset takes one module name at most") }
                return .modulesReset(rest.dropFirst().first)
            }
            if rest.first == "verify" { return .modulesVerify(Array(rest.dropFirst())) }
            return try alone(.modules, rest)
        case "status": return try alone(.status, rest)
        case "devices": return try alone(.devices, rest)
        case "device": return try device(rest, time)
        case "clients": return try alone(.clients, rest)
        case "listen":
            guard rest.count <= 1 else { throw UsageError(message: "listen takes one device name at most") }
            var listen = listen
            listen.device = rest.first
            return .listen(listen)
        case "decode":
            var decode = decode
            decode.isLines = air.isLines
            return try decoding(rest, decode)
        case "encode":
            guard let subject = rest.first.flatMap(DecodeSubject.init(word:)), rest.count >= 2 else {
                throw UsageError(
                    message: "encode: say `encode companion JSON`, `encode packet JSON` or `encode lpp JSON`")
            }
            return .encode(subject, json: rest.dropFirst().joined(separator: " "))
        case "reload": return try alone(.reload, rest)
        case "scan": return try alone(.scan(try air.scanOptions(time)), rest)
        case "pair": return .pair(try air.pairOptions("pair", rest))
        case "unpair": return .unpair(try air.pairOptions("unpair", rest))
        case "doctor": return try alone(.doctor, rest)
        case "hci":
            guard rest.count == 2, rest[0] == "info" else {
                throw UsageError(message: "hci: say `hci info CONTROLLER`, such as `hci info hci1`")
            }
            return .controllerInfo(rest[1])
        case "bridge": return try alone(.bridge(try bridge.options()), rest)
        case "version": return try alone(.version, rest)
        case "help": return .help
        case let word?:
            let near = NearestName.of(word, among: commandNames).map { "; did you mean \($0)?" } ?? ""
            throw UsageError(message: "unknown command \"\(word)\"\(near)")
        }
    }

    private static func decoding(_ words: [String], _ options: DecodeOptions) throws(UsageError) -> HostCommand {
        let subjects = DecodeSubject.allCases.map(\.rawValue) + BluetoothSubject.allCases.map(\.rawValue)
        guard let word = words.first, words.count >= 2 else {
            throw UsageError(
                message: "decode: say `decode WHAT HEX`, where WHAT is one of \(subjects.joined(separator: ", ")), or "
                    + "`decode btsnoop FILE`")
        }
        let hex = words.dropFirst().joined()
        if let subject = DecodeSubject(word: word) { return .decode(subject, hex: hex, options) }
        if let subject = BluetoothSubject(rawValue: word) { return .decodeBluetooth(subject, hex: hex, options) }
        if word == "btsnoop" {
            guard words.count == 2 else { throw UsageError(message: "decode btsnoop takes one file") }
            return .decodeRecording(path: words[1], options)
        }
        let near = NearestName.of(word, among: subjects + ["btsnoop"]).map { "; did you mean \($0)?" } ?? ""
        throw UsageError(message: "decode: cannot decode \"\(word)\"\(near)")
    }

    private static func alone(_ command: HostCommand, _ rest: [String]) throws(UsageError) -> HostCommand {
        guard let extra = rest.first else { return command }
        throw UsageError(message: "unexpected word \"\(extra)\"")
    }

    private static func device(_ words: [String], _ release: Duration?) throws(UsageError) -> HostCommand {
        guard let name = words.first, words.count <= 2 else {
            throw UsageError(message: "say `device NAME status|connect|disconnect|release|reconnect`")
        }
        switch words.dropFirst().first ?? "status" {
        case "status": return .device(name: name, .status)
        case "connect": return .device(name: name, .connect)
        case "disconnect": return .device(name: name, .disconnect)
        case "release": return .device(name: name, .release(for: release))
        case "reconnect": return .device(name: name, .reconnect)
        case let verb:
            let verbs = ["status", "connect", "disconnect", "release", "reconnect"]
            let near = NearestName.of(verb, among: verbs).map { "; did you mean \($0)?" } ?? ""
            throw UsageError(message: "device \(name): unknown verb \"\(verb)\"\(near)")
        }
    }
}

extension HostCommand {
    /// Whether an option of `decode` goes with this.
    fileprivate func takes(decoding option: String) -> Bool {
        switch self {
        case .decode(.companion, _, _): true
        case .decode(.packet, _, _): option == "--channel"
        case .decodeBluetooth(let subject, _, _): option == "--secrets" && subject != .att
        case .decodeRecording: option == "--secrets"
        default: false
        }
    }
}

extension HostCommand.DecodeSubject {
    /// What a word of the command line means; `frame` is what `companion` was called first.
    fileprivate init?(word: String) {
        if word == "frame" { self = .companion } else { self.init(rawValue: word) }
    }
}

/// Goes through the words of a command line; `--name=value` is two of them.
private struct WordScanner {
    private var words: ArraySlice<String>

    init(_ words: [String]) {
        self.words = words[...]
    }

    mutating func next() -> String? {
        guard let word = words.popFirst() else { return nil }
        if word.hasPrefix("--"), let equals = word.firstIndex(of: "=") {
            words = [String(word[word.index(after: equals)...])] + words
            return String(word[..<equals])
        }
        return word
    }

    mutating func value(of option: String) throws(UsageError) -> String {
        guard let value = words.popFirst() else { throw UsageError(message: "\(option) needs a value") }
        return value
    }

    mutating func number(of option: String) throws(UsageError) -> UInt64 {
        let text = try value(of: option)
        guard let number = UInt64(text) else { throw UsageError(message: "\(option) \(text): not a number") }
        return number
    }
}
