// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshTransportAPI
internal import MeshWire

/// What a module in a process of its own says of itself, checked.
struct ModuleHello: Sendable {
    var descriptor: TransportDescriptor
    /// The ABI it was built with, such as `1.1`; of a program that knows no ABI the version of the protocol.
    var abi: String
    var url: String?
    /// Whether it judges options beyond their table.
    var validates: Bool
    /// Whether it says which device options mean.
    var identifies: Bool

    /// The words of the capabilities, by their bit in the ABI.
    static let capabilities = [
        "scan", "multilink", "pairing", "stream", "pipelined-reads", "send-without-response", "network", "adapter",
        "own-deadlines",
    ]

    /// The host's hello.
    static var ofHost: Data {
        JSONValue.object(["protocols": [.int(ModuleMessage.version)], "abi": .string(ModuleABI.version)])
            .serialized()
    }

    /// Whether the other side speaks a version that this one does; the highest that both do is spoken, and there is one.
    static func isUnderstood(_ document: Data) -> Bool {
        guard let hello = try? JSONValue(parsing: document) else { return false }
        return hello["protocols"]?.arrayValue?.contains(.int(ModuleMessage.version)) ?? false
    }

    // MARK: The module's side

    /// The hello of a library that was loaded.
    static func document(of module: LoadedModule) -> Data {
        let descriptor = module.descriptor
        var hello: [String: JSONValue] = [
            "protocols": [.int(ModuleMessage.version)], "name": .string(descriptor.name),
            "version": .string(descriptor.version), "vendor": .string(descriptor.vendor),
            "license": .string(descriptor.license), "abi": .string(module.abi),
            "validates": .bool(module.ops.validate != nil), "identifies": .bool(module.ops.identity != nil),
        ]
        if let url = module.url { hello["url"] = .string(url) }
        // What needs a function that is missing is no capability.
        var bits = module.capabilities
        if !module.canScan { bits &= ~MH_CAP_SCAN }
        if !module.canSendWithoutResponse { bits &= ~MH_CAP_SEND_WITHOUT_RESPONSE }
        hello["capabilities"] = .array(
            capabilities.enumerated().filter { bits & (1 << $0.offset) != 0 }.map { .string($0.element) })
        hello["options"] = .array(
            descriptor.options.map { option in
                var row: [String: JSONValue] = [
                    "name": .string(option.name), "type": .string(option.kind.rawValue), "help": .string(option.help),
                    "secret": .bool(option.isSecret),
                ]
                if let text = option.defaultText { row["default"] = .string(text) }
                return .object(row)
            })
        return JSONValue.object(hello).serialized()
    }

    // MARK: The host's side

    /// Reads the hello of the module that a config calls `name`; nil: whatever it is called. Capabilities that are not known
    /// are passed over.
    init(_ document: Data, path: String, name wanted: String?) throws(ModuleRefusal) {
        func refusal(_ rule: String, advice: String = "ask its vendor for a version that keeps to the protocol")
            -> ModuleRefusal
        { ModuleRefusal(path, rule, advice: advice) }
        guard let hello = try? JSONValue(parsing: document), hello.objectValue != nil else {
            throw refusal("its hello is no JSON object")
        }
        guard Self.isUnderstood(document) else {
            throw refusal(
                "speaks no version of the protocol that this daemon does (\(ModuleMessage.version))",
                advice: "update meshhost or the module")
        }
        func text(_ key: String) throws(ModuleRefusal) -> String {
            guard let value = hello[key]?.stringValue, (1...1_023).contains(value.utf8.count),
                value.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
            else { throw refusal("the \(key) in its hello is not printable ASCII") }
            return value
        }
        let name = try text("name")
        guard ModuleName.isValid(name) else {
            throw refusal("calls itself \"\(name)\", which is no module name (\(ModuleName.pattern))")
        }
        guard wanted == nil || name == wanted else {
            throw refusal(
                "is the module \"\(name)\", not \"\(wanted ?? "")\"",
                advice: "write module = \"\(name)\" in the config, or install the right file")
        }
        var bits: UInt64 = 0
        for word in hello["capabilities"]?.arrayValue ?? [] {
            guard let bit = Self.capabilities.firstIndex(of: word.stringValue ?? "") else { continue }
            bits |= 1 << UInt64(bit)
        }
        guard bits & MH_CAP_STREAM == 0 else {
            throw refusal(
                "carries bytes instead of frames, which this daemon cannot do",
                advice: "ask its vendor for a module that frames")
        }
        descriptor = TransportDescriptor(
            name: name, version: try text("version"), vendor: try text("vendor"), license: try text("license"),
            capabilities: TransportCapabilities(rawValue: bits), options: [])
        abi = hello["abi"] == nil ? "\(ModuleMessage.version)" : try text("abi")
        url = hello["url"] == nil ? nil : try text("url")
        validates = hello["validates"] == true
        identifies = hello["identifies"] == true
        let rows = hello["options"]?.arrayValue ?? []
        guard rows.count <= ModuleDescription.optionLimit else { throw refusal("its option table is too long") }
        for (index, row) in rows.enumerated() {
            guard let option = Self.option(row), !descriptor.options.contains(where: { $0.name == option.name }) else {
                throw refusal("option \(index) of its table is not usable")
            }
            descriptor.options.append(option)
        }
    }

    private static func option(_ row: JSONValue) -> OptionSpec? {
        guard let name = row["name"]?.stringValue, ModuleName.isValidOption(name),
            let kind = row["type"]?.stringValue.flatMap(OptionSpec.Kind.init(rawValue:)),
            let help = row["help"]?.stringValue, help.utf8.count < 1_024,
            (row["default"]?.stringValue?.utf8.count ?? 0) < 1_024
        else { return nil }
        let spec = OptionSpec(
            name, kind, default: row["default"]?.stringValue, help: help.singleLine, secret: row["secret"] == true)
        return spec.hasUsableDefault ? spec : nil
    }
}

extension OptionSpec {
    /// A default of the wrong kind would leave the option without a value, as in an empty table.
    var hasUsableDefault: Bool { defaultText == nil || [self].resolve([:]).values != [].resolve([:]).values }
}
