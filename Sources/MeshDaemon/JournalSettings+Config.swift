// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshConfig
internal import MeshJournal

extension JournalSettings {
    /// What the config says of the journal.
    init(_ config: JournalConfig) {
        self.init()
        maximumEntries = Int(config.maximumMessages)
        maximumAge = config.maximumAge
        durability = config.sync == .full ? .full : .normal
    }
}
