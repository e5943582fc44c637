// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A syntax error as toml++ tells it, put into words for people who do not know the grammar of TOML. What is not known
/// here keeps the parser's words.
struct TOMLProblem {
    var position: SourcePosition
    var message: String
    var hint: String?

    init(_ text: String, at position: SourcePosition, in file: ConfigText) {
        self.position = position
        message = text.dropping(prefix: "Error while parsing ")
        let lines = file.lines
        let line = lines.indices.contains(position.line - 1) ? Array(lines[position.line - 1].unicodeScalars) : []
        if !explainText(line), !explainValue(line), !explainNesting(line), !explainTwice(line), !explainLine(line) {
            for end in ["'\\n'", "'\\r'", "end-of-file"] where message.hasSuffix("saw \(end)") {
                message = message.dropLast(end.count) + "the end of the line"
            }
        }
    }

    /// Quotes and what stands between them.
    private mutating func explainText(_ line: [Unicode.Scalar]) -> Bool {
        if message.contains("control characters other than TAB") {
            if position.column > line.count {
                return say("a text in quotes does not end on its line", hint: "a closing quote may be missing")
            }
            return say("there is a control character in a text", hint: "write it as \\uXXXX")
        }
        if message.contains("string: encountered end-of-file") {
            return say("the file ends inside a text", hint: "a closing quote may be missing")
        }
        if message.contains("unknown escape sequence") {
            return say(
                "a backslash in double quotes begins an escape sequence, and there is none like this",
                hint: "a text with backslashes stands in single quotes: 'C:\\dir'")
        }
        return false
    }

    /// Numbers, dates, true, false, and what was meant to be a text. The value itself is not shown, because nobody
    /// knows yet whether it is a secret.
    private mutating func explainValue(_ line: [Unicode.Scalar]) -> Bool {
        if message.contains("expected value, saw") {
            return say("a value is missing")
        }
        let kinds = [
            "boolean:", "floating-point:", "decimal integer:", "hexadecimal integer:", "octal integer:",
            "binary integer:", "date:", "time:", "date-time:", "value: could not determine",
        ]
        guard kinds.contains(where: { message.hasPrefix($0) }) else { return false }
        let token = moveToValue(in: line)
        if message.contains("leading zeroes are prohibited") {
            return say("a number does not begin with 0", hint: "put it in quotes if it is a text, such as a PIN")
        }
        if message.contains("is not representable in 64 bits") {
            return say("this number is too large")
        }
        if ["true", "false"].contains(token.lowercased()) {
            return say("this is no value", hint: "write \(token.lowercased()) in lower case")
        }
        if let first = token.first, "“”„‘’‚`´".contains(first) {
            return say("this is no value", hint: "a text stands in straight quotes: \"value\" or 'value'")
        }
        return say("this is no value", hint: "a text needs quotes: key = \"value\"")
    }

    /// Lists and inline tables.
    private mutating func explainNesting(_ line: [Unicode.Scalar]) -> Bool {
        if message.contains("array: encountered end-of-file") {
            return say("the file ends inside a list", hint: "a closing ] may be missing")
        }
        if message.contains("array: expected comma or closing ']'") {
            return say("a list needs a comma or its closing ] here", hint: "the line before may lack it")
        }
        if message.contains("inline table: expected"), position.column > line.count {
            return say(
                "a table in { } ends on the line it begins on", hint: "write it in one line, or as a [section]")
        }
        if message.contains("dangling comma") {
            return say("a table in { } does not end with a comma", hint: "remove the last comma")
        }
        return false
    }

    /// Keys and headers that are there already.
    private mutating func explainTwice(_ line: [Unicode.Scalar]) -> Bool {
        guard let rest = message.after("cannot redefine existing ") else { return false }
        let name = rest.split(separator: "'", maxSplits: 1).last?.prefix { $0 != "'" } ?? rest
        if rest.hasPrefix("array"), message.hasSuffix("as table") {
            return say("\"\(name)\" is a list above", hint: "write [[\(name)]] with double brackets each time")
        }
        if message.hasPrefix("table header") {
            return say("[\(name)] is there twice", hint: "put all its keys below one header")
        }
        moveToKey(in: line)
        return say("\"\(name)\" is there twice", hint: "remove one of them")
    }

    /// What a line may hold.
    private mutating func explainLine(_ line: [Unicode.Scalar]) -> Bool {
        if message.contains("expected '=', saw ':'") {
            return say(
                "a key is followed by =, not by :", hint: "TOML is not YAML: write key = \"value\" and [section]")
        }
        if message.contains("expected '=', saw") {
            return position.column > line.count
                ? say("a key needs = and a value")
                : say(
                    "a key is followed by = and a value",
                    hint: "keys of other characters than A-Z, a-z, 0-9, _ and - need quotes")
        }
        if message.contains("expected a comment or whitespace") {
            return say("nothing but a comment may follow here", hint: "every key and every header has its own line")
        }
        if message.hasPrefix("key: expected bare key") {
            return say(
                "a key is missing", hint: "between brackets and dots stand keys: [section], [[section]], a.b = 1")
        }
        if message.hasPrefix("root table: expected") {
            let first = line.indices.contains(position.column - 1) ? line[position.column - 1] : " "
            return say(
                "this is no key, no header and no comment",
                hint: first == ";" || first == "/"
                    ? "a comment begins with #" : "keys of other characters than A-Z, a-z, 0-9, _ and - need quotes")
        }
        if message.hasPrefix("table header: expected ']'"), position.column > line.count {
            return say("a header needs its closing bracket", hint: "write [section] or [[section]]")
        }
        return false
    }

    private mutating func say(_ message: String, hint: String? = nil) -> Bool {
        self.message = message
        self.hint = hint
        return true
    }

    /// The parser points to where a value stops making sense; people look for it at its first character. Returns the
    /// value.
    private mutating func moveToValue(in line: [Unicode.Scalar]) -> String {
        func isInside(_ scalar: Unicode.Scalar) -> Bool { !" \t=,[]{}#".unicodeScalars.contains(scalar) }
        while position.column > 1, line.indices.contains(position.column - 2), isInside(line[position.column - 2]) {
            position.column -= 1
        }
        var token = ""
        token.unicodeScalars.append(contentsOf: line.dropFirst(position.column - 1).prefix(while: isInside))
        return token
    }

    /// The parser points to the value of a key that is there twice.
    private mutating func moveToKey(in line: [Unicode.Scalar]) {
        let before = line.prefix(max(position.column - 1, 0))
        guard !before.contains("{") else { return }
        position.column = 1 + before.prefix { $0 == " " || $0 == "\t" }.count
    }
}

extension String {
    fileprivate func dropping(prefix: String) -> String {
        hasPrefix(prefix) ? String(dropFirst(prefix.count)) : self
    }

    /// What follows the first occurrence of `text`.
    fileprivate func after(_ text: String) -> Substring? {
        firstRange(of: text).map { self[$0.upperBound...] }
    }

    private func firstRange(of text: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(text) {
                return start..<index(start, offsetBy: text.count)
            }
            start = index(after: start)
        }
        return nil
    }
}
