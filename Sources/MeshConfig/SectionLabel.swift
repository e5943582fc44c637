// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How messages name a section: `[daemon]`, `[defaults.link]`, `[[device]] "roof"`, `link of [[device]] "roof"`.
struct SectionLabel: Sendable {
    /// Nil at the top of the file.
    var text: String?

    static let root = SectionLabel(text: nil)

    /// One element of a list of tables, by its name where it has one.
    static func element(of list: String, name: String?, ordinal: Int) -> SectionLabel {
        SectionLabel(text: "[[\(list)]] " + (name.map(\.quoted) ?? "#\(ordinal)"))
    }

    /// One element of a list of tables inside this section.
    func element(of list: String, name: String?, ordinal: Int) -> SectionLabel {
        let inner = SectionLabel.element(of: list, name: name, ordinal: ordinal)
        return SectionLabel(text: [inner.text, text].compactMap(\.self).joined(separator: " of "))
    }

    /// The table under a key of this section.
    func table(_ key: String) -> SectionLabel {
        switch text {
        case nil: SectionLabel(text: "[\(key)]")
        case "[defaults]": SectionLabel(text: "[defaults.\(key)]")
        case "[module]": SectionLabel(text: "[module.\(key)]")
        case let outer?: key == "options" ? self : SectionLabel(text: "\(key) of \(outer)")
        }
    }
}
