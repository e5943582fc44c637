// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI

extension HostConfigReader {
    mutating func readModules(_ top: Section) {
        guard let section = subsection("module", of: top) else { return }
        for entry in section.table.entries {
            guard let module = subsection(entry.key, of: section) else { continue }
            if let advice = TextRule.moduleName.advice(entry.key) {
                diagnostics.error(
                    .valueNotAllowed, at: entry.keyPosition, in: section.label.text,
                    "a module cannot be called \(entry.key.quoted)", hint: advice)
            }
            readModule(module, name: entry.key)
        }
    }

    private mutating func readModule(_ section: Section, name: String) {
        typealias Keys = ConfigSchema.Module
        var section = section
        judgeKeys(of: &section, Keys.section.keys)
        var module = ModuleConfig(name: name, position: section.position)
        module.path = value(Keys.path, in: section)
        module.command = value(Keys.command, in: section)
        module.isolation = value(Keys.isolation, in: section)
        module.memoryLimit = value(Keys.memory, in: section)
        module.sha256 = value(Keys.sha256, in: section)?.lowercased()
        if section.table.entries.isEmpty || section.proposed.contains(Keys.path.spec.name) {
            var path = Keys.path.spec
            path.isRequired = true
            return reportMissing([path], in: section)
        }
        if let command = section.table[Keys.command.spec.name] {
            if section.table[Keys.path.spec.name] != nil {
                diagnostics.error(
                    .valueNotAllowed, at: command.node.position, in: section.label.text,
                    "a module is a library or a program: \"command\" does not go with \"path\"",
                    hint: "leave one of them out")
            }
            if module.isolation == .inProcess, let place = section.table[Keys.isolation.spec.name]?.node.position {
                diagnostics.error(
                    .valueNotAllowed, at: place, in: section.label.text,
                    "\"isolation\" cannot be \"in-process\" for a program", hint: "leave it out")
            }
        }
        config.modules.append(module)
    }
}
