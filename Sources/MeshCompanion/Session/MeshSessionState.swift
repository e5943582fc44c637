// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How far a MeshCoreSession is, in the words for people.
public enum MeshSessionState: String, Sendable, Hashable, Codable {
    /// There is no link.
    case disconnected
    /// The transport is making the link.
    case connecting
    /// The link is up; the radio has not answered yet.
    case connected
    /// The radio has answered: clock, contacts and messages are being fetched.
    case syncing
    /// Everything the settings ask for has been fetched once.
    case ready
}
