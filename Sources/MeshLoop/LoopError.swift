// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV

/// What the operating system said through libuv, translated once.
public struct LoopError: Error, Sendable, Hashable {
    /// What kind of failure this is; the cases a caller decides on have names, the rest is `system`.
    public enum Kind: String, Sendable, Hashable {
        case addressInUse
        case addressNotAvailable
        case brokenPipe
        case busy
        case cancelled
        case connectionRefused
        case connectionReset
        /// A device does not answer, or there is none behind its name.
        case deviceGone
        case endOfFile
        case exists
        case hostNotFound
        case hostUnreachable
        case invalidArgument
        /// Handles were still open when the loop was shut down.
        case leak
        case networkUnreachable
        case noResources
        case notConnected
        case notFound
        case permissionDenied
        case timedOut
        case system
    }

    public var kind: Kind
    /// What was being done, such as `connect`.
    public var operation: String
    /// The system's own words, such as `ECONNREFUSED: connection refused`.
    public var detail: String

    /// For failures that do not come from libuv.
    public init(kind: Kind, operation: String, detail: String) {
        self.kind = kind
        self.operation = operation
        self.detail = detail
    }

    /// `status` is a negative libuv result.
    init(status: Int32, operation: String) {
        self.operation = operation
        detail = "\(String(cString: uv_err_name(status))): \(String(cString: uv_strerror(status)))"
        switch uv_errno_t(status) {
        case UV_EADDRINUSE: kind = .addressInUse
        case UV_EADDRNOTAVAIL: kind = .addressNotAvailable
        case UV_EPIPE: kind = .brokenPipe
        case UV_EBUSY: kind = .busy
        case UV_ECANCELED, UV_EAI_CANCELED: kind = .cancelled
        case UV_ECONNREFUSED: kind = .connectionRefused
        case UV_ECONNRESET, UV_ECONNABORTED: kind = .connectionReset
        case UV_EIO, UV_ENXIO: kind = .deviceGone
        case UV_EOF: kind = .endOfFile
        case UV_EEXIST: kind = .exists
        case UV_EAI_NONAME, UV_EAI_NODATA, UV_EAI_AGAIN, UV_EAI_FAIL, UV_EAI_ADDRFAMILY: kind = .hostNotFound
        case UV_EHOSTUNREACH, UV_EHOSTDOWN: kind = .hostUnreachable
        case UV_EINVAL, UV_ENAMETOOLONG: kind = .invalidArgument
        case UV_ENETUNREACH, UV_ENETDOWN: kind = .networkUnreachable
        case UV_EMFILE, UV_ENFILE, UV_ENOMEM, UV_ENOBUFS: kind = .noResources
        case UV_ENOTCONN: kind = .notConnected
        case UV_ENOENT, UV_ENODEV: kind = .notFound
        case UV_EACCES, UV_EPERM: kind = .permissionDenied
        case UV_ETIMEDOUT: kind = .timedOut
        default: kind = .system
        }
    }

    /// Throws for a negative libuv result.
    static func check(_ status: Int32, _ operation: String) throws(LoopError) {
        if status < 0 { throw LoopError(status: status, operation: operation) }
    }
}

extension LoopError: CustomStringConvertible {
    /// `operation: detail`.
    public var description: String { "\(operation): \(detail)" }
}
