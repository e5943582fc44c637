// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How the controller answered a command.
public enum HCICommandOutcome: Sendable, Hashable {
    /// Done; what it returned behind its status.
    case completed([UInt8])
    /// Begun; an event tells its end.
    case started
    /// Not done.
    case refused(HCIStatus)
    /// It will not be answered: the controller is being reset, or has been given up.
    case lost

    /// Command Complete's parameters: the first is the status in every command of this host.
    init(returned parameters: [UInt8]) {
        guard let first = parameters.first, first != HCIStatus.success.rawValue else {
            self = .completed(Array(parameters.dropFirst()))
            return
        }
        self = .refused(HCIStatus(rawValue: first))
    }

    init(_ status: HCIStatus) {
        self = status == .success ? .started : .refused(status)
    }
}
