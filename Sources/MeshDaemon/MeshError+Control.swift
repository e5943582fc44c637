// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI

extension MeshError {
    /// Why the control socket could not be opened, and what to do about it.
    init(control error: LoopError, path: String) {
        switch error.kind {
        case .addressInUse:
            self.init(
                .serviceUnavailable,
                "the control socket \(path) is in use: \(error.detail); stop the other daemon, or set daemon.control_socket",
                cause: error)
        case .permissionDenied:
            self.init(
                .permissionDenied, "no permission to make the control socket \(path); set daemon.control_socket",
                cause: error)
        case .notFound:
            self.init(
                .configurationInvalid,
                "the folder of the control socket \(path) does not exist; make it, or set daemon.control_socket",
                cause: error)
        default:
            self.init(.storageFailed, "cannot make the control socket \(path): \(error.detail)", cause: error)
        }
    }
}
