// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI

extension MeshError {
    /// Why a share could not listen, and what to do about it.
    init(listening error: LoopError, on address: SocketAddress, for share: String) {
        switch error.kind {
        case .addressInUse:
            self.init(
                .resourceExhausted, "\(share): \(address) is in use by another program; choose another address",
                cause: error)
        case .permissionDenied:
            let advice =
                address.unixPath == nil ? "ports below 1024 need a capability" : "its folder is not this user's"
            self.init(.permissionDenied, "\(share): no permission to listen on \(address); \(advice)", cause: error)
        case .notFound:
            self.init(
                .configurationInvalid,
                "\(share): the folder of \(address) does not exist; make it, or choose another path", cause: error)
        case .addressNotAvailable:
            // It may get it: an interface comes up later, or waits for its lease.
            self.init(
                .serviceUnavailable,
                "\(share): this machine has no address \(address.host) now; choose another, or start it once it has",
                cause: error)
        default:
            self.init(.serviceUnavailable, "\(share): cannot listen on \(address): \(error.detail)", cause: error)
        }
    }
}
