// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// The words of `scan`, `pair` and `unpair` as they are met; `--jsonl` is also one of `decode btsnoop`.
struct AirWords {
    private var module: String?
    private var adapter: String?
    private(set) var isLines = false
    var pin: String?

    static let names = ["--module", "--adapter", "--jsonl"]

    /// Takes a word that is one of ``names``; `value` reads the next one.
    mutating func take(_ word: String, value: () throws(UsageError) -> String) throws(UsageError) {
        switch word {
        case "--module": module = try value()
        case "--adapter": adapter = try value()
        default: isLines = true
        }
    }

    /// Throws when a word does not go with the command.
    func check(_ command: HostCommand) throws(UsageError) {
        var (takesModule, takesAdapter, takesLines) = (false, false, false)
        switch command {
        case .scan: (takesModule, takesLines) = (true, true)
        case .decodeRecording: takesLines = true
        case .pair, .unpair: (takesModule, takesAdapter) = (true, true)
        default: break
        }
        if module != nil, !takesModule { throw UsageError(message: "--module only goes with scan, pair and unpair") }
        if adapter != nil, !takesAdapter { throw UsageError(message: "--adapter only goes with pair and unpair") }
        if isLines, !takesLines { throw UsageError(message: "--jsonl only goes with scan and decode btsnoop") }
    }

    func scanOptions(_ time: Duration?) throws(UsageError) -> HostCommand.ScanOptions {
        var options = HostCommand.ScanOptions(module: module, isLines: isLines)
        guard let time else { return options }
        guard ScanLimits.time.contains(time) else {
            throw UsageError(message: "--for \(time.optionText): a scan takes 1s to 1h")
        }
        options.time = time
        return options
    }

    func pairOptions(_ verb: String, _ words: [String]) throws(UsageError) -> HostCommand.PairOptions {
        guard words.count == 1 else {
            throw UsageError(message: "\(verb): say `\(verb) DEVICE` or `\(verb) ADDRESS`")
        }
        if let pin, pin != "-" { _ = try Self.checked(pin: pin) }
        return HostCommand.PairOptions(target: words[0], module: module, adapter: adapter, pin: pin)
    }

    /// A PIN of up to 16 digits: what any radio may have. The module knows better what its own take.
    static func checked(pin: String) throws(UsageError) -> String {
        guard (1...16).contains(pin.utf8.count), pin.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains)
        else {
            // Not with the value: it is a secret.
            throw UsageError(message: "--pin: a PIN has 1 to 16 digits; write - to read it from standard input")
        }
        return pin
    }
}

/// How long a scan may take.
enum ScanLimits {
    static let time: ClosedRange<Duration> = .seconds(1) ... .seconds(3_600)
}
