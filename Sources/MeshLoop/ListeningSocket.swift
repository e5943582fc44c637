// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV
internal import Glibc

/// A bound descriptor on which somebody can knock. Dropping it closes it and, for a Unix socket, removes the file if it is
/// still the one that was made.
final class ListeningSocket {
    /// How many connections may wait to be accepted.
    private static let backlog: Int32 = 128

    let descriptor: Int32
    /// For a TCP port of 0, with the port that the kernel chose.
    let address: SocketAddress
    /// The file that was made; nil for TCP.
    let file: FileIdentity?

    /// Takes over a descriptor that is bound and listens.
    private init(_ descriptor: Int32, _ address: SocketAddress, file: FileIdentity?) {
        self.descriptor = descriptor
        self.address = address
        self.file = file
    }

    deinit {
        close(descriptor)
        // Another file at the path belongs to somebody else, who has taken it over meanwhile.
        if let path = address.unixPath, let file, FileIdentity(path) == file { unlink(path) }
    }

    /// Listens for TCP connections.
    static func tcp(_ address: SocketAddress) throws(LoopError) -> ListeningSocket {
        let operation = "bind \(address)"
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(address.isIPv6 ? AF_INET6 : AF_INET, type, 0)
        if descriptor < 0 { throw LoopError(status: -errno, operation: operation) }
        do throws(LoopError) {
            // A restart need not wait for the connections of the run before (tcp(7)).
            try set(descriptor, SOL_SOCKET, SO_REUSEADDR, operation)
            if address.isIPv6 { try set(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, operation) }
            let failure = address.withSockaddr { Glibc.bind(descriptor, $0, address.length) == 0 ? 0 : errno }
            try LoopError.check(-failure, operation)
            try listen(descriptor, "listen on \(address)")
        } catch {
            close(descriptor)
            throw error
        }
        return ListeningSocket(descriptor, bound(descriptor) ?? address, file: nil)
    }

    /// Listens on a Unix socket. A file that nobody listens on any more is replaced, unless `isNew`: then there must be none.
    static func unix(_ path: String, mode: UInt32, isNew: Bool = false) throws(LoopError) -> ListeningSocket {
        let descriptor = try UnixSocket.bind(path, mode: mode, replacesStale: !isNew)
        let socket = ListeningSocket(descriptor, SocketAddress(unixPath: path), file: FileIdentity(path))
        try listen(descriptor, "listen on \(path)")
        return socket
    }

    private static func listen(_ descriptor: Int32, _ operation: String) throws(LoopError) {
        if Glibc.listen(descriptor, backlog) != 0 { throw LoopError(status: -errno, operation: operation) }
    }

    private static func set(
        _ descriptor: Int32, _ level: Int32, _ option: Int32, _ operation: String
    ) throws(LoopError) {
        var yes: Int32 = 1
        guard setsockopt(descriptor, level, option, &yes, socklen_t(MemoryLayout<Int32>.size)) == 0 else {
            throw LoopError(status: -errno, operation: operation)
        }
    }

    private static func bound(_ descriptor: Int32) -> SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                getsockname(descriptor, address, &length) == 0 ? SocketAddress(copying: address) : nil
            }
        }
    }
}
