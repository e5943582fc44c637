// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

extension SocketAddress {
    /// What one machine cannot choose by itself: an IPv4 address as a whole, and the first 64 bits of an IPv6 address, which
    /// is what a network hands out to one customer or one cable (RFC 6177, RFC 7421).
    public var network: String {
        guard isIPv6 else { return host }
        return withSockaddr { address in
            address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { six in
                withUnsafeBytes(of: six.pointee.sin6_addr) { bytes in
                    bytes.prefix(8).reduce(into: "") { text, byte in
                        text += (byte < 16 ? "0" : "") + String(byte, radix: 16)
                    } + "/64"
                }
            }
        }
    }
}
