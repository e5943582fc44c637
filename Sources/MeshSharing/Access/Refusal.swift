// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Why somebody who connected does not become a client.
enum Refusal: String {
    /// The share has as many clients as it may have.
    case full
    /// TLS was not spoken, or not in good order.
    case tls
    /// A token was not proved.
    case proof
    /// It took too long.
    case timeout
    /// Others came after it, more than can be waited for.
    case crowd
    /// Too many proofs of its network, or of this token from there, have failed.
    case barred

    var leaveReason: LeaveReason { self == .full ? .refused : .denied }
}
