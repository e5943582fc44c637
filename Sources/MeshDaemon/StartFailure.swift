// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// What kept the daemon from being ready: one error, or several of which each would have done.
struct StartFailure: Error {
    var errors: [MeshError]

    /// How the program ends. What another start would end with as well goes before what may pass: a service manager does
    /// not try again then.
    var status: ExitStatus {
        let statuses = errors.map(Self.status)
        let order: [ExitStatus] = [.configuration, .permission, .unavailable]
        return order.first { statuses.contains($0) } ?? .internalError
    }

    private static func status(of error: MeshError) -> ExitStatus {
        switch error.code {
        // `run` has nothing that could be used wrongly but its config and its folders: a journal of a newer version, say.
        case .invalidArgument, .deviceUnknown, .notSupported: .configuration
        default: HostProgram.status(of: error)
        }
    }
}
