// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What a text must look like, and what to say when it does not.
struct TextRule: Sendable {
    /// What to write instead; nil when the text is fine.
    var advice: @Sendable (String) -> String?

    func read(_ node: ConfigNode, key: String) throws(Complaint) -> String {
        guard let text = node.text else {
            throw .wrongType(key, takes: "a text", node, hint: Self.quotingHint(node, key: key))
        }
        if let advice = advice(text) {
            throw .notAllowed(key, text, hint: advice, at: node.position)
        }
        return text
    }

    private static func quotingHint(_ node: ConfigNode, key: String) -> String? {
        switch node.value {
        case .integer(let number): "write it in quotes: \"\(number)\""
        case .boolean(let flag): "write it in quotes: \"\(flag)\""
        case .table, .array, .string, .unparsed, .real, .dateOrTime, .null: nil
        }
    }
}

extension TextRule {
    /// Any text but an empty one.
    static let notEmpty = TextRule { $0.isEmpty ? "write a text" : nil }

    /// `/…`
    static let absolutePath = TextRule { text in
        if text.utf8.contains(0) { return "a path holds no NUL" }
        if text.hasPrefix("~") { return "~ means nothing here: write an absolute path" }
        return text.hasPrefix("/") ? nil : "write an absolute path"
    }

    /// A SHA-256 digest in hexadecimal, as sha256sum(1) prints it.
    static let sha256 = TextRule { text in
        text.utf8.count == 64 && text.allSatisfy { $0.isASCII && $0.isHexDigit }
            ? nil : "write the 64 hexadecimal digits that `meshhost modules verify` prints"
    }

    /// An absolute path that fits into a socket address: `sun_path` holds 108 bytes with the final NUL (unix(7)).
    static let socketPath = TextRule { text in
        absolutePath.advice(text) ?? (text.utf8.count > 107 ? "the path of a socket has at most 107 bytes" : nil)
    }

    /// `^[a-z0-9][a-z0-9_-]{0,31}$`: devices and shares.
    static let name = TextRule { text in
        if text.isIdentifier(maximumLength: 32, startsWithDigit: true) { return nil }
        return text.suggestion(maximumLength: 32, startsWithDigit: true)
            ?? "a name has 1 to 32 of the characters a-z, 0-9, _ and -, and begins with a letter or digit"
    }

    /// `^[a-z][a-z0-9_-]{0,62}$`
    static let moduleName = TextRule { text in
        if text.isIdentifier(maximumLength: 63, startsWithDigit: false) { return nil }
        if text.contains("/") || text.hasSuffix(".so") {
            return "write the module's name, such as \"tcp\"; its file goes to path of [module.NAME]"
        }
        return text.suggestion(maximumLength: 63, startsWithDigit: false)
            ?? "a module name has 1 to 63 of the characters a-z, 0-9, _ and -, and begins with a letter"
    }
}

extension String {
    fileprivate func isIdentifier(maximumLength: Int, startsWithDigit: Bool) -> Bool {
        let characters = Array(utf8)
        func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
        func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
        guard let first = characters.first, characters.count <= maximumLength,
            isLetter(first) || startsWithDigit && isDigit(first)
        else { return false }
        return characters.allSatisfy {
            isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-")
        }
    }

    /// The nearest acceptable text, for upper case and spaces.
    fileprivate func suggestion(maximumLength: Int, startsWithDigit: Bool) -> String? {
        let simpler = String(lowercased().map { $0 == " " || $0 == "." ? "-" : $0 })
        return simpler.isIdentifier(maximumLength: maximumLength, startsWithDigit: startsWithDigit)
            ? "did you mean \"\(simpler)\"?" : nil
    }
}
