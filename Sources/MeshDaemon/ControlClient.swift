// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc
internal import MeshTransportAPI

/// The command line's side of the control socket. Blocking: it does one thing and ends.
struct ControlClient: ~Copyable {
    private let descriptor: Int32
    private var splitter = LineSplitter()
    private var lines: [Data] = []

    /// Connects to the daemon. Throws ``MeshError/Code-swift.struct/serviceUnavailable`` when none runs.
    init(path: String) throws(MeshError) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw MeshError(.invalidArgument, "the control socket's path is too long: \(path)")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else {
            let reason = errno
            close(descriptor)
            if reason == EACCES || reason == EPERM {
                throw MeshError(
                    .permissionDenied, "no permission for \(path); join the daemon's group, or run as its user")
            }
            throw MeshError(
                .serviceUnavailable,
                "no daemon answers on \(path): \(String(cString: strerror(reason))); is `meshhost run` running? name its "
                    + "socket with --control")
        }
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    /// Asks one question and waits for its answer.
    mutating func ask(_ method: String, _ params: JSONValue = [:]) throws(MeshError) -> JSONValue {
        try send(method, params)
        let answer = try nextObject()
        if let result = answer["result"] { return result }
        throw Self.error(in: answer)
    }

    /// Asks for events; `onEvent` returns whether to go on.
    mutating func stream(
        _ method: String, _ params: JSONValue, onEvent: (JSONValue) -> Bool
    ) throws(MeshError) {
        try send(method, params)
        while true {
            let answer = try nextObject()
            guard let event = answer["event"] else { throw Self.error(in: answer) }
            if !onEvent(event) { return }
        }
    }

    private static func error(in answer: JSONValue) -> MeshError {
        let error = answer["error"]
        let code = error?["code"]?.stringValue.flatMap(MeshError.Code.init(slug:)) ?? .internalError
        return MeshError(code, error?["message"]?.stringValue ?? "the daemon's answer makes no sense")
    }

    private func send(_ method: String, _ params: JSONValue) throws(MeshError) {
        var bytes = [UInt8](ControlProtocol.Request(method: method, params: params).line)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Self.closed }
            bytes = bytes.dropFirst(count)
        }
    }

    private mutating func nextObject() throws(MeshError) -> JSONValue {
        while lines.isEmpty {
            var buffer = [UInt8](repeating: 0, count: 16_384)
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Self.closed }
            // The daemon is trusted: its answers may be longer than what it accepts.
            lines += buffer.withUnsafeBytes { splitter.lines(adding: .init(rebasing: $0[..<count]), limit: .max) } ?? []
        }
        return try JSONValue(parsing: lines.removeFirst())
    }

    private static var closed: MeshError {
        MeshError(.serviceUnavailable, "the daemon closed the control connection")
    }
}
