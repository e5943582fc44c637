// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// What befalls a journal, beside the answers to calls.
public enum JournalEvent: Sendable {
    /// Calls fail from now on, the first of them with this error. The journal tries by itself whether they still do.
    case failing(MeshError)
    /// Something could be written. Who has something to store tries it now; whether there was room for that, too, shows then.
    case writable
    /// What is written is kept again.
    case working
    /// The file was damaged: it has this path now, and a new one has begun.
    case replaced(keptAs: String, MeshError)
}
