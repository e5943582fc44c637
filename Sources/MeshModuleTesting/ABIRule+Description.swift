// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshModuleHost
internal import MeshTransportAPI

extension ABIRule {
    /// Rules about what a module is before there is an instance.
    static let description = [
        ABIRule(loading) { stage in
            let module = stage.module
            let info = module.info.pointee
            var problems: [String] = []
            func expect(_ condition: Bool, _ problem: @autoclosure () -> String) {
                if !condition { problems.append(problem()) }
            }
            for (what, text) in [
                ("name", info.name), ("version", info.version), ("vendor", info.vendor), ("license", info.license),
            ] {
                let bytes = text.map { String(cString: $0).utf8 }
                expect(
                    bytes?.isEmpty == false && bytes?.allSatisfy { (0x20...0x7E).contains($0) } == true,
                    "the \(what) is not printable ASCII")
            }
            expect(info.ops.pointee.reserved0 == 0, "reserved0 of the functions is not 0")
            expect(!module.has(MH_CAP_SCAN) || module.ops.scan != nil, "MH_CAP_SCAN without scan")
            expect(
                !module.has(MH_CAP_SEND_WITHOUT_RESPONSE) || module.ops.send_without_response != nil,
                "MH_CAP_SEND_WITHOUT_RESPONSE without send_without_response")
            expect(!module.has(MH_CAP_PAIRING) || module.ops.manage != nil, "MH_CAP_PAIRING without manage")
            expect(!module.has(MH_CAP_STREAM), "MH_CAP_STREAM is reserved")
            expect(
                Set(module.options.map(\.name)).count == module.options.count, "an option is declared twice")
            for (index, option) in module.options.enumerated() {
                let row = info.options[index]!.pointee
                expect(isOptionName(option.name), "the option name \"\(option.name)\" is malformed")
                expect(option.help.hasSuffix("."), "the help of option \(option.name) is no sentence")
                // A default that is no value of its kind gives no value.
                expect(
                    option.defaultText == nil || [option].resolve([:]).values != [].resolve([:]).values,
                    "the default of option \(option.name) is no \(option.kind.rawValue)")
                expect(
                    row.secret <= 1 && row.reserved0 == 0,
                    "secret of option \(option.name) is neither 0 nor 1, or reserved0 is not 0")
            }
            if let first = problems.first {
                throw RuleEnd.broken(problems.count == 1 ? first : problems.joined(separator: "; "))
            }
        },
        ABIRule("the host loads the file") { stage in
            do throws(ModuleRefusal) {
                _ = try ModuleLoader(locator: ModuleLocator(only: [])).load(stage.module.name, path: stage.module.path)
            } catch {
                throw RuleEnd.broken(error.description)
            }
        },
        ABIRule("the entry function does nothing but answer") { stage in
            let before = ProcessFacts()
            for _ in 0..<10 {
                try stage.expect(stage.module.entry() == stage.module.info, "it returns another pointer each time")
            }
            let after = ProcessFacts()
            try stage.expect(
                after.descriptors == before.descriptors,
                "it leaves \(after.descriptors - before.descriptors) descriptors")
            try stage.expect(after.threads == before.threads, "it leaves \(after.threads - before.threads) threads")
        },
        ABIRule("options are judged without an instance, always the same", needs: [.options]) { stage in
            let values = JSONValue.object(stage.options).text()
            if let validate = stage.module.ops.validate {
                let verdicts = (0..<3).map { _ in
                    stage.call("validate") {
                        SinkChunks.collect { sink, ctx in withABI(values) { validate($0, sink, ctx) } }
                    }
                }
                for (status, chunks) in verdicts {
                    for chunk in chunks.list {
                        let issue = try? JSONValue(parsing: Data(chunk))
                        try stage.expect(
                            issue?["msg"]?.stringValue?.isEmpty == false && issue?["ptr"]?.stringValue != nil,
                            "validate gave a chunk that is no object with ptr and msg: "
                                + String(decoding: chunk, as: UTF8.self))
                    }
                    try stage.expect(
                        (status == MH_OK) == chunks.list.isEmpty && (status == MH_OK || status == MH_EINVAL),
                        "validate found \(chunks.list.count) problems and returned \(status.named)")
                }
                try stage.expect(Set(verdicts.map(\.1.text)).count == 1, "validate judges the same options otherwise")
            }
            if let identity = stage.module.ops.identity {
                let texts = (0..<3).map { _ in
                    stage.call("identity") {
                        SinkChunks.collect { sink, ctx in withABI(values) { identity($0, sink, ctx) } }
                    }
                }
                try stage.expect(texts.allSatisfy { $0.0 == MH_OK }, "identity returned \(texts[0].0.named)")
                try stage.expect(Set(texts.map(\.1.text)).count == 1, "identity says something else each time")
            }
        },
    ]
}
