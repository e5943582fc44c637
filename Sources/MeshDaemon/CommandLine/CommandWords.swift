// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// The words of a command line, told apart: options with their values, and the rest.
struct CommandWords {
    /// Those that are no options, without the words of the command once that is known.
    var operands: [String] = []
    /// Those behind `--`; nil without it.
    var trailing: [String]?
    /// Options by their long names, in the order they were met; a flag's value is nil.
    private(set) var met: [(name: String, value: String?)] = []

    subscript(_ option: String) -> String? {
        met.last { $0.name == option }?.value
    }

    func has(_ option: String) -> Bool {
        met.contains { $0.name == option }
    }

    func all(_ option: String) -> [String] {
        met.compactMap { $0.name == option ? $0.value : nil }
    }

    mutating func add(_ option: String, _ value: String?) {
        met.append((option, value))
    }

    func number(_ option: String) throws(UsageError) -> UInt64? {
        guard let text = self[option] else { return nil }
        guard let number = UInt64(text) else {
            throw UsageError(message: "\(option) \(text): not a number; write a whole one from 0")
        }
        return number
    }

    func duration(_ option: String, such example: String) throws(UsageError) -> Duration? {
        guard let text = self[option] else { return nil }
        guard let duration = Duration(optionText: text) else {
            throw UsageError(message: "\(option) \(text): not a duration; write for example \(example)")
        }
        return duration
    }
}
