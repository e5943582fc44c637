// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import MeshTransportAPI
import Testing

@Suite struct SecretTests {
    @Test func `a file is read without its last line end`() throws {
        let folder = try ScratchFolder()
        for (text, secret) in [
            ("123456\n", "123456"), ("123456\r\n", "123456"), ("a\n\n", "a\n"), ("", ""), (" x ", " x "),
        ] {
            let path = try folder.write(text, to: "pin", mode: 0o640)
            #expect(try SecretReference.file(path).resolve(SecretSource(environment: [:])) == secret)
        }
    }

    @Test func `a file that others can read is refused`() throws {
        let folder = try ScratchFolder()
        let path = try folder.write("123456", to: "pin", mode: 0o644)
        let error = #expect(throws: MeshError.self) {
            try SecretReference.file(path).resolve(SecretSource(environment: [:]))
        }
        #expect(error?.code == .configurationInvalid)
        #expect(error?.message == "\(path) can be read by everyone; run: chmod o-rwx \(path)")
    }

    @Test func `a file that is missing, a folder, too long or no text is refused`() throws {
        let folder = try ScratchFolder()
        try Fixtures.write([0x61, 0xFF], absolute: "\(folder.path)/binary", mode: 0o600)
        _ = try folder.write(String(repeating: "x", count: 65_537), to: "long")
        for (name, problem) in [
            ("missing", "does not exist"), (".", "is not a regular file"), ("long", "is longer than 64 KiB"),
            ("binary", "is not UTF-8 text"),
        ] {
            let error = #expect(throws: MeshError.self) {
                try SecretReference.file("\(folder.path)/\(name)").resolve(SecretSource(environment: [:]))
            }
            #expect(error?.code == .configurationInvalid)
            #expect(error?.message == "\(folder.path)/\(name) \(problem)")
        }
    }

    @Test func `a key that others can read is refused, a certificate is not`() throws {
        let folder = try ScratchFolder()
        let path = try folder.write("PEM", to: "file.pem", mode: 0o644)
        #expect(try PEMFile.read(path) == Array("PEM".utf8))
        let error = #expect(throws: MeshError.self) { try PEMFile.read(path, isPrivate: true) }
        #expect(error?.code == .configurationInvalid)
        #expect(error?.message == "\(path) can be read by everyone; run: chmod o-rwx \(path)")
        let missing = #expect(throws: MeshError.self) { try PEMFile.read("\(folder.path)/missing") }
        #expect(missing?.code == .configurationInvalid)
    }

    @Test func `variables and credentials come from the environment`() throws {
        let folder = try ScratchFolder()
        _ = try folder.write("654321\n", to: "roof-pin", mode: 0o444)
        let source = SecretSource(environment: ["PIN": "123456", "CREDENTIALS_DIRECTORY": folder.path])
        #expect(try SecretReference.environment("PIN").resolve(source) == "123456")
        #expect(try SecretReference.credential("roof-pin").resolve(source) == "654321")

        let empty = SecretSource(environment: [:])
        let variable = #expect(throws: MeshError.self) { try SecretReference.environment("PIN").resolve(empty) }
        #expect(variable?.message == "the environment variable PIN is not set")
        let credential = #expect(throws: MeshError.self) { try SecretReference.credential("roof-pin").resolve(empty) }
        #expect(credential?.message.contains("LoadCredential=roof-pin:PATH") == true)
    }

    @Test func `resolved options have the kinds of the table`() throws {
        let config = try #require(
            read("[[device]]\nname = \"a\"\nmodule = \"acme-lora\"\nchannel = 3\nkey = { env = \"KEY\" }").config)
        let device = config.devices[0]
        #expect(
            try device.resolvedOptions(SecretSource(environment: ["KEY": "42"])) == ["channel": 3, "key": 42])
        let error = #expect(throws: MeshError.self) {
            try device.resolvedOptions(SecretSource(environment: [:]))
        }
        #expect(error?.message == "option \"key\": the environment variable KEY is not set")
        #expect(error?.context.device == "a")
    }

    @Test func `a secret shows in no output`() throws {
        let reading = read(
            """
            [[device]]
            name = "roof"
            module = "tcp"
            host = "x"
            password = "hunter2"
            [[device]]
            name = "pager"
            module = "acme"
            optional = true
            password = "hunter3"
            """)
        let config = try #require(reading.config)
        var outputs = [
            reading.diagnostics.rendered(), config.shownTOML(), config.shownJSON().text(), "\(config)",
            String(reflecting: config),
        ]
        var dumped = ""
        dump(config, to: &dumped)
        outputs.append(dumped)
        for output in outputs {
            #expect(!output.contains("hunter"))
        }
        #expect(reading.diagnostics.count == 2)
    }

    @Test func `a module judges a stand-in, and what it says of it does not count`() {
        let text = "[[device]]\nname = \"roof\"\nmodule = \"bluez\"\naddress = \"x\"\npin = { env = \"PIN\" }"
        #expect(read(text).report == "")
    }
}
