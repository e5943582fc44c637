// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

extension TransportConformance {
    /// What is wrong with a factory's facts and option table. `required` are values for the options without default, and
    /// for those of which one at least must be given.
    public static func checkDescriptor(
        of factory: some TransportFactory, required: [String: JSONValue]
    ) -> [String] {
        let descriptor = factory.descriptor
        var problems: [String] = []
        func expect(_ condition: Bool, _ problem: @autoclosure () -> String) {
            if !condition { problems.append(problem()) }
        }
        expect(isName(descriptor.name, allowsHyphen: true), "the module name \"\(descriptor.name)\" is malformed")
        for (what, text) in [
            ("version", descriptor.version), ("vendor", descriptor.vendor), ("license", descriptor.license),
        ] {
            expect(!text.isEmpty, "there is no \(what)")
        }
        expect(
            descriptor.capabilities.contains(.scanning) == (factory is any TransportScanning),
            "the scanning capability and TransportScanning do not agree")
        let names = descriptor.options.map(\.name)
        expect(Set(names).count == names.count, "an option is declared twice")
        for option in descriptor.options {
            expect(isName(option.name, allowsHyphen: false), "the option name \"\(option.name)\" is malformed")
            expect(option.help.hasSuffix("."), "option \(option.name) has no help that is a sentence")
            expect(
                option.defaultText != nil || required[option.name] != nil,
                "option \(option.name) has no default, and no value was given to this check")
        }
        let (_, issues) = factory.check(required)
        for issue in issues { problems.append("the defaults are not valid: \(issue.option): \(issue.message)") }
        for option in descriptor.options where option.defaultText != nil && required[option.name] == nil {
            let values = descriptor.options.resolve(required).values
            let isSet =
                switch option.kind {
                case .string: values.string(option.name) == option.defaultText
                case .int: "\(values.int(option.name))" == option.defaultText
                case .bool: "\(values.bool(option.name))" == option.defaultText
                case .duration:
                    option.defaultText.flatMap { Duration(optionText: $0) } == values.duration(option.name)
                }
            expect(isSet, "the default of option \(option.name) is no \(option.kind.rawValue)")
        }
        return problems
    }

    /// `^[a-z][a-z0-9_]{0,62}$`, with `-` in module names.
    private static func isName(_ text: String, allowsHyphen: Bool) -> Bool {
        guard let first = text.utf8.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first),
            text.utf8.count <= 63
        else { return false }
        return text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
            case UInt8(ascii: "-"): allowsHyphen
            default: false
            }
        }
    }
}
