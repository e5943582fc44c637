// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI
internal import MeshWire

extension MeshError {
    /// A payload that cannot be framed.
    init(_ failure: CompanionFrameEncoder.Failure, context: Context) {
        switch failure {
        case .empty:
            self.init(.invalidArgument, "an empty frame cannot be sent: radios do not answer it", context: context)
        case .tooLong(let length, let ceiling):
            self.init(
                .frameTooLong, "a frame of \(length) bytes exceeds the \(ceiling) that the link carries",
                context: context)
        }
    }
}
