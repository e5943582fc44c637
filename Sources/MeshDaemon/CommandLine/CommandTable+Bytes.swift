// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension CommandTable {
    /// What bytes mean, and the bytes of what is meant.
    static let bytes: [CommandSyntax] = [
        CommandSyntax(
            words: ["decode", "companion"], operands: "HEX...", operandCount: 1...(.max),
            summary: "what a companion frame says",
            details: """
                In its framing (3c... from a client, 3e... from a radio), or bare. A bare one below 80 could be a
                command or a reply, so both are told.
                """,
            ownOptions: [
                CommandOption(
                    name: "--request", value: "HEX",
                    help: "the SEND_BINARY_REQ or SEND_ANON_REQ that a binary response answers"), .channel, .secrets,
                .json,
            ],
            hints: ["--jsonl": "each frame is a line of JSON already"],
            examples: [
                "decode companion 3e03000c8000",
                "decode companion 88f8ab150011c3c1354d619bae9590e4d177db7eeaf982f5bdcf --channel '#bot'",
            ],
            make: { .decode(.companion, hex: $0.operands.joined(), DecodeOptions($0)) }),
        CommandSyntax(
            words: ["decode", "packet"], operands: "HEX...", operandCount: 1...(.max),
            summary: "what a packet over the air says",
            details: """
                As a received-packet log (push 88) holds it. The key of the channel Public is always tried.
                """,
            ownOptions: [.channel, .json],
            hints: ["--secrets": "a packet shows no keys"],
            examples: ["decode packet 15833fa002860ccae0eed9ca78b9ab0775d477c1f6490a398bf4edc75240 --channel '#bot'"],
            make: { .decode(.packet, hex: $0.operands.joined(), DecodeOptions($0)) }),
        CommandSyntax(
            words: ["decode", "lpp"], operands: "HEX...", operandCount: 1...(.max),
            summary: "what sensor readings (Cayenne LPP) say",
            details: """
                A line each. Where they cannot be read any further, the last line has the error and the bytes from there on.
                """,
            ownOptions: [.json], examples: ["decode lpp 016700ff"],
            make: { .decode(.lpp, hex: $0.operands.joined(), DecodeOptions($0)) }),
        CommandSyntax(
            words: ["decode", "hci"], operands: "HEX...", operandCount: 1...(.max),
            summary: "what packets between a host and a Bluetooth controller say",
            details: """
                Each with H4's indicator before it: 01 command, 02 data, 04 event.
                """,
            ownOptions: [.secrets, .json], examples: ["decode hci 01030c00"],
            make: { .decodeBluetooth(.hci, hex: $0.operands.joined(), DecodeOptions($0)) }),
        CommandSyntax(
            words: ["decode", "att"], operands: "HEX...", operandCount: 1...(.max),
            summary: "what a packet of the attribute protocol says",
            ownOptions: [.json], hints: ["--secrets": "such a packet shows no keys"], examples: ["decode att 0a1200"],
            make: { .decodeBluetooth(.att, hex: $0.operands.joined(), DecodeOptions($0)) }),
        CommandSyntax(
            words: ["decode", "smp"], operands: "HEX...", operandCount: 1...(.max),
            summary: "what a packet of the Security Manager says",
            ownOptions: [.secrets, .json], examples: ["decode smp 0202000d100303"],
            make: { .decodeBluetooth(.smp, hex: $0.operands.joined(), DecodeOptions($0)) }),
        CommandSyntax(
            words: ["decode", "btsnoop"], operands: "FILE", operandCount: 1...1, offer: .files,
            summary: "a recording of Bluetooth, packet by packet",
            details: """
                In the format of btmon and Wireshark. FILE may be - for standard input.
                """,
            ownOptions: [CommandOption(name: "--jsonl", help: "a line of JSON for each packet"), .secrets],
            hints: ["--json": "a recording may be of any size; say --jsonl"],
            examples: ["decode btsnoop pairing.btsnoop", "decode btsnoop - --jsonl < pairing.btsnoop"],
            make: { .decodeRecording(path: $0.operands[0], DecodeOptions($0)) }),
        CommandSyntax(
            words: ["encode", "companion"], operands: "JSON", operandCount: 1...(.max),
            summary: "the bytes of a command, a reply or a push",
            details: """
                From its name and its fields, as `decode companion` shows them.
                """,
            ownOptions: [.json], examples: [#"encode companion '{"name": "GET_CHANNEL", "channel": 3}'"#],
            make: { .encode(.companion, json: $0.operands.joined(separator: " ")) }),
        CommandSyntax(
            words: ["encode", "packet"], operands: "JSON", operandCount: 1...(.max),
            summary: "the bytes of a packet over the air",
            details: """
                From its fields, as `decode packet` shows them.
                """,
            ownOptions: [.json],
            examples: [#"encode packet '{"header": 21, "path_byte": 0, "path": "", "payload": "ca78b9ab0775"}'"#],
            make: { .encode(.packet, json: $0.operands.joined(separator: " ")) }),
        CommandSyntax(
            words: ["encode", "lpp"], operands: "JSON", operandCount: 1...(.max),
            summary: "the bytes of an array of sensor readings",
            ownOptions: [.json],
            examples: [#"encode lpp '[{"channel": 1, "type":"temperature", "value": 25.5}]'"#],
            make: { .encode(.lpp, json: $0.operands.joined(separator: " ")) }),
    ]

    private typealias DecodeOptions = HostCommand.DecodeOptions
}

extension CommandOption {
    fileprivate static let channel = CommandOption(
        name: "--channel", value: "'#NAME'|NAME=KEY", isRepeatable: true,
        help: "try the key of this channel, too; repeatable")
}

extension HostCommand.DecodeOptions {
    fileprivate init(_ words: CommandWords) {
        self.init(
            channels: words.all("--channel"), request: words["--request"], showsSecrets: words.has("--secrets"),
            isLines: words.has("--jsonl"))
    }
}
