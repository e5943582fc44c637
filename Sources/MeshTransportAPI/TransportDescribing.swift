// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A factory that can tell about what its links go through.
public protocol TransportDescribing: TransportFactory {
    /// What is known of an adapter, by the name that options use for it, such as `hci1`: an object without secrets. One that
    /// nobody uses is opened for the moment; one that somebody else uses is left to them. Throws when there is none, or it
    /// does not answer.
    func describe(_ adapter: String) async throws -> JSONValue
}
