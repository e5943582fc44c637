// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV
internal import Glibc

/// An IPv4, IPv6 or Unix-socket address.
public struct SocketAddress: Sendable {
    private var storage: sockaddr_storage
    private var path: String?

    init(copying address: UnsafePointer<sockaddr>) {
        storage = sockaddr_storage()
        let length =
            address.pointee.sa_family == sa_family_t(AF_INET6)
            ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
        withUnsafeMutableBytes(of: &storage) {
            $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: length))
        }
    }

    /// A numeric address such as `127.0.0.1`, `::1` or `fe80::1%eth0`; nil for a host name.
    public init?(ip: String, port: UInt16) {
        storage = sockaddr_storage()
        let status = withUnsafeMutablePointer(to: &storage) { pointer in
            let four = pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { uv_ip4_addr(ip, Int32(port), $0) }
            if four == 0 { return four }
            return pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { uv_ip6_addr(ip, Int32(port), $0) }
        }
        guard status == 0 else { return nil }
    }

    /// A Unix socket in the file system; its path is at most 107 bytes (`sun_path`, unix(7)).
    public init(unixPath: String) {
        storage = sockaddr_storage()
        storage.ss_family = sa_family_t(AF_UNIX)
        path = unixPath
    }

    /// The path of a Unix socket.
    public var unixPath: String? { path }

    /// The port; 0 for a Unix socket.
    public var port: UInt16 {
        withUnsafePointer(to: storage) { pointer in
            switch Int32(storage.ss_family) {
            case AF_INET:
                pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { UInt16(bigEndian: $0.pointee.sin_port) }
            case AF_INET6:
                pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                    UInt16(bigEndian: $0.pointee.sin6_port)
                }
            default: 0
            }
        }
    }

    /// Whether it stays on this machine: 127.0.0.0/8, ::1 or a Unix socket.
    public var isLoopback: Bool {
        withUnsafePointer(to: storage) { pointer in
            switch Int32(storage.ss_family) {
            case AF_INET:
                pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    UInt32(bigEndian: $0.pointee.sin_addr.s_addr) >> 24 == 127
                }
            case AF_INET6:
                pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                    withUnsafeBytes(of: $0.pointee.sin6_addr) { $0.dropLast().allSatisfy { $0 == 0 } && $0[15] == 1 }
                }
            default: true
            }
        }
    }

    /// Whether it is an IPv6 address.
    public var isIPv6: Bool { Int32(storage.ss_family) == AF_INET6 }

    /// The address without the port, such as `::1`.
    public var host: String {
        if let path { return path }
        return withSockaddr { address in
            withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
                let status =
                    isIPv6
                    ? address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                        uv_ip6_name($0, buffer.baseAddress, 64)
                    }
                    : address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                        uv_ip4_name($0, buffer.baseAddress, 64)
                    }
                return status == 0 ? String(cString: buffer.baseAddress!) : "?"
            }
        }
    }

    /// What `localhost` is here: `127.0.0.1`, and `::1` where this machine has IPv6.
    static func loopbacks(port: UInt16) -> [SocketAddress] {
        ["127.0.0.1", "::1"].compactMap { SocketAddress(ip: $0, port: port) }.filter { !$0.isIPv6 || $0.isOfThisHost }
    }

    /// Whether something can be bound there, whatever the port.
    private var isOfThisHost: Bool {
        guard let probe = SocketAddress(ip: host, port: 0) else { return false }
        let descriptor = socket(AF_INET6, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return probe.withSockaddr { bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in6>.size)) } == 0
    }

    /// How long what ``withSockaddr(_:)`` points to is; not for a Unix socket.
    var length: socklen_t {
        socklen_t(isIPv6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size)
    }

    func withSockaddr<Result>(_ body: (UnsafePointer<sockaddr>) -> Result) -> Result {
        withUnsafePointer(to: storage) { $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body) }
    }
}

extension SocketAddress: CustomStringConvertible {
    /// `127.0.0.1:5000`, `[::1]:5000` or the path.
    public var description: String {
        if let path { return path }
        return isIPv6 ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
