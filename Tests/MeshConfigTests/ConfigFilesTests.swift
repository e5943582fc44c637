// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import MeshTransportAPI
import Testing

@Suite struct ConfigFilesTests {
    @Test func `the folder gives its main file and its parts in byte order`() throws {
        let folder = try ScratchFolder()
        try folder.makeFolder("config.d")
        _ = try folder.write("main", to: "config.toml")
        for name in ["20-b.toml", "10-a.toml", "9-c.toml", "B.toml", "a.toml", ".hidden.toml", "note.txt", "x.toml~"] {
            _ = try folder.write(name, to: "config.d/\(name)")
        }
        let (texts, diagnostics) = ConfigFiles.gather(folder: folder.path)
        #expect(diagnostics.isEmpty)
        #expect(
            texts.map(\.path)
                == ["config.toml"].map { "\(folder.path)/\($0)" }
                + ["10-a.toml", "20-b.toml", "9-c.toml", "B.toml", "a.toml"].map { "\(folder.path)/config.d/\($0)" })
        #expect(texts[0].bytes == Array("main".utf8))
    }

    @Test func `explicit files stand alone, in their order`() throws {
        let folder = try ScratchFolder()
        _ = try folder.write("", to: "config.toml")
        let b = try folder.write("", to: "b.toml")
        let a = try folder.write("", to: "a.json")
        #expect(ConfigFiles.gather(explicit: [b, a], folder: folder.path).texts.map(\.path) == [b, a])
    }

    @Test func `no file at all is a warning`() throws {
        let folder = try ScratchFolder()
        let input = ConfigInput.gathering(folder: folder.path)
        #expect(
            input.diagnostics.rendered()
                == "\(folder.path)/config.toml: warning[C0003]: there is no configuration file; write one, or name one "
                + "with --config\n")
        #expect(HostConfig.reading(input, modules: SampleModule.lookUp).config == HostConfig())
    }

    @Test func `files that cannot be read are errors, and the others are judged all the same`() throws {
        let folder = try ScratchFolder()
        let long = try folder.write(String(repeating: "#", count: ConfigFiles.maximumLength + 1), to: "long.toml")
        let good = try folder.write("[daemon]\nlog_level = \"loud\"", to: "good.toml")
        let missing = "\(folder.path)/missing.toml"
        let input = ConfigInput.gathering(explicit: [missing, good, long, folder.path])
        let reading = HostConfig.reading(input, modules: SampleModule.lookUp)
        #expect(reading.config == nil)
        #expect(
            reading.report == """
                \(good):2:13: error[C0104]: "log_level" cannot be "loud" in [daemon]; allowed are "error", "warning", \
                "notice", "info", "debug"
                \(missing): error[C0001]: the file does not exist
                \(long): error[C0001]: the file is longer than 1024 KiB
                \(folder.path): error[C0001]: the file is not a regular file

                """)
    }

    @Test func `a file of exactly the maximum length is read`() throws {
        let folder = try ScratchFolder()
        let path = try folder.write(String(repeating: "#", count: ConfigFiles.maximumLength), to: "long.toml")
        #expect(try ConfigFiles.read(path).bytes.count == ConfigFiles.maximumLength)
    }
}
