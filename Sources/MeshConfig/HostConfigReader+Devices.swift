// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI

extension HostConfigReader {
    mutating func readDevice(_ node: ConfigNode, ordinal: Int) {
        typealias Keys = ConfigSchema.Device
        guard let table = node.table else {
            diagnostics.error(
                .wrongType, at: node.position, in: nil,
                "\"device\" takes a list of tables, and this is \(node.typeName)",
                hint: "write [[device]]")
            return
        }
        let label = SectionLabel.element(of: "device", name: table["name"]?.node.text, ordinal: ordinal)
        var section = Section(label: label, table: table, position: node.position, isDevice: true)
        section.overridePath = ["device", table["name"]?.node.text ?? "NAME"]

        let name = value(Keys.name, in: section)
        let module = value(Keys.module, in: section)
        var device = DeviceConfig(name: name ?? "", module: module ?? "")
        device.position = node.position
        device.moduleConfig = config.modules.first { $0.name == module }
        device.moduleConfig?.position = .none
        device.isOptional = value(Keys.optional, in: section)
        device.autoconnect = value(Keys.autoconnect, in: section)
        device.deviceProtocol = value(Keys.proto, in: section)
        device.adapter = value(Keys.adapter, in: section)
        if let companion = subsection("companion", of: section) {
            device.companion = readCompanion(companion)
        }
        device.link = config.linkDefaults
        if let link = subsection("link", of: section) {
            device.link = readLink(link, over: config.linkDefaults)
        }
        let options = subsection("options", of: section)?.table ?? ConfigTable()
        if let module {
            switch lookUp(module) {
            case .found(let factory):
                judgeAdapter(of: factory.descriptor, in: section)
                device.options = readOptions(options, of: factory, for: device, in: &section)
            case .unavailable(let reason):
                reportUnavailable(&device, reason: reason, options: options, in: section)
            }
        } else {
            judgeWithoutModule(options, in: &section)
        }
        let otherNames = knownDevices.map(\.name)
        reportMissing(
            Keys.section.keys, in: section, hint: overrideHint(section, list: "device", names: otherNames))

        guard let written = table["name"]?.node, let text = written.text else { return }
        if let other = knownDevices.first(where: { $0.name == text }) {
            diagnostics.error(
                .nameTaken, at: written.position, in: nil, "there are two devices named \(text.quoted)",
                hint: "the other one is at \(other.position)")
            return
        }
        knownDevices.append(
            KnownDevice(name: text, position: written.position, deviceProtocol: device.deviceProtocol))
        if name != nil, module != nil {
            config.devices.append(device)
        }
    }

    private mutating func readCompanion(_ section: Section) -> CompanionConfig {
        typealias Keys = ConfigSchema.Companion
        var section = section
        var companion = CompanionConfig()
        judgeKeys(of: &section, Keys.section.keys)
        companion.sendWait = value(Keys.sendWait, in: section)
        companion.setsClock = value(Keys.setClock, in: section)
        companion.backlog = value(Keys.backlog, in: section)
        companion.probeAfter = value(Keys.probeAfter, in: section)
        return companion
    }

    private mutating func reportUnavailable(
        _ device: inout DeviceConfig, reason: String, options: ConfigTable, in section: Section
    ) {
        let place = section.table["module"]?.node.position ?? section.position
        let message = "module \(device.module.quoted) is not available"
        // Nobody knows which of the options are secrets.
        for entry in options.entries {
            device.options[entry.key] = .unchecked(SecretText(entry.node.json.text()))
            diagnostics.hideLine(at: entry.node.position)
        }
        if device.isOptional {
            device.disabledReason = "\(message): \(reason)"
            diagnostics.warning(.moduleUnavailable, at: place, in: section.label.text, message, hint: reason)
        } else {
            diagnostics.error(.moduleUnavailable, at: place, in: section.label.text, message, hint: reason)
        }
    }

    /// Without a module, a key that looks like one of the host's is a slip; all others may be options.
    private mutating func judgeWithoutModule(_ options: ConfigTable, in section: inout Section) {
        let free = ConfigSchema.Device.section.keys.map(\.name).filter { section.table[$0] == nil }
        for entry in options.entries where entry.isShorthand && NearestName.of(entry.key, among: free) != nil {
            reportUnknown(entry, in: &section, proposing: free, known: free)
        }
    }

    private mutating func readOptions(
        _ options: ConfigTable, of factory: any TransportFactory, for device: DeviceConfig, in section: inout Section
    ) -> [String: OptionSetting] {
        let specs = factory.descriptor.options
        var settings: [String: OptionSetting] = [:]
        var given: [String: JSONValue] = [:]
        // Options whose value is not known now: the module judges a stand-in, and what it says of it does not count.
        var unknown: Set<String> = []
        for entry in options.entries {
            guard let spec = specs.first(where: { $0.name == entry.key }) else {
                var known = specs.map(\.name)
                let free =
                    known.filter { options[$0] == nil }
                    + (entry.isShorthand ? ConfigSchema.Device.section.keys.map(\.name) : [])
                    .filter { section.table[$0] == nil }
                known = known.isEmpty ? ConfigSchema.Device.section.keys.map(\.name) : known
                reportUnknown(entry, in: &section, proposing: free, known: known)
                if specs.contains(where: { $0.isSecret && NearestKey.of(entry.key, among: [$0.name]) != nil }) {
                    diagnostics.hideLine(at: entry.node.position)
                }
                continue
            }
            guard spec.isSecret else {
                let value = entry.node.unparsedText.map { spec.kind.json(ofText: $0) } ?? entry.node.json
                settings[entry.key] = .value(value)
                given[entry.key] = value
                continue
            }
            if case .unparsed = entry.node.value {} else { diagnostics.hideLine(at: entry.node.position) }
            guard let reference = readSecret(entry, in: section) else {
                unknown.insert(entry.key)
                given[entry.key] = spec.kind.standIn
                continue
            }
            settings[entry.key] = .secret(reference, spec.kind)
            if case .inline(let text) = reference {
                given[entry.key] = spec.kind.json(ofText: text.revealed)
            } else {
                unknown.insert(entry.key)
                given[entry.key] = spec.kind.standIn
                requirements.append(
                    ConfigRequirement(
                        .option(entry.key, reference), at: entry.node.position, in: section.label.text))
            }
        }
        let issues = factory.check(given).issues
        for issue in issues where !unknown.contains(issue.option) {
            report(issue, options: options, specs: specs, in: section)
        }
        if issues.allSatisfy({ unknown.contains($0.option) }) {
            judgeIdentity(of: device, given.filter { !unknown.contains($0.key) }, factory, in: section)
        }
        return settings
    }

    /// An adapter that nobody looks at is a wish that is not heard.
    private mutating func judgeAdapter(of module: TransportDescriptor, in section: Section) {
        guard let written = section.table[ConfigSchema.Device.adapter.spec.name],
            !module.options.contains(where: { $0.name == "adapter" })
        else { return }
        let hasController = module.options.contains { $0.name == "controller" }
        diagnostics.error(
            .contradiction, at: written.keyPosition, in: section.label.text,
            "\"adapter\" does not go with module \"\(module.name)\"",
            hint: hasController ? "write it as controller" : "it has no adapters to choose from: leave this out")
    }

    /// Two devices that are one would take the link from each other.
    private mutating func judgeIdentity(
        of device: DeviceConfig, _ given: [String: JSONValue], _ factory: any TransportFactory, in section: Section
    ) {
        var given = given
        // As the module will get them.
        if let adapter = device.adapter, given["adapter"] == nil,
            factory.descriptor.options.contains(where: { $0.name == "adapter" })
        {
            given["adapter"] = .string(adapter)
        }
        let (values, issues) = factory.check(given)
        guard issues.isEmpty, let text = factory.identity(values) else { return }
        let identity = Identity(module: device.module, text: text, device: device.name, position: section.position)
        if let other = identities.first(where: { $0.module == identity.module && $0.text == text }) {
            // Of two with one name it is told that they have one name.
            guard other.device != device.name else { return }
            diagnostics.error(
                .deviceTwice, at: section.position, in: section.label.text,
                "device \(device.name.quoted) is the same as device \(other.device.quoted): \(text)",
                hint: "the other one is at \(other.position); keep one of them")
        } else {
            identities.append(identity)
        }
    }

    /// Puts a module's complaint to the value, or to the device where there is none.
    private mutating func report(
        _ issue: OptionIssue, options: ConfigTable, specs: [OptionSpec], in section: Section
    ) {
        let spec = specs.first { $0.name == issue.option }
        if let spec, spec.defaultText == nil, options[issue.option] == nil {
            guard isComplete, !section.proposed.contains(issue.option) else { return }
            diagnostics.error(
                .missingKey, at: section.position, in: section.label.text, "option \"\(issue.option)\" is missing",
                hint: issue.hint?.asHint)
            return
        }
        let place = options[issue.option]?.node.position ?? section.position
        let subject = issue.option.isEmpty ? "" : "option \"\(issue.option)\": "
        let isReference = options[issue.option]?.node.table?.entries.contains {
            SecretReference.kinds.contains($0.key)
        }
        let hint = isReference == true ? "only secrets can be references" : issue.hint
        diagnostics.error(
            .optionRefused, at: place, in: section.label.text, subject + issue.message, hint: hint)
    }
}

extension ConfigNode {
    fileprivate var unparsedText: String? {
        if case .unparsed(let text) = value { text } else { nil }
    }
}

extension OptionSpec.Kind {
    /// A value of this kind in the place of a secret that is not read yet.
    fileprivate var standIn: JSONValue {
        switch self {
        case .string: "secret"
        case .int: 1
        case .bool: true
        case .duration: "1s"
        }
    }
}
