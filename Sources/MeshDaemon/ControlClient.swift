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

    private let path: String
    /// How long an answer may take.
    private let patience: Duration
    /// Requests that may take so many times as long: a reload may have to look names up, and what modules are asked has
    /// deadlines of its own (90 s for a pairing, then 5 s to end it, and 10 s for the link before it).
    private static let factors = ["reload": 6, "pair": 12, "unpair": 4, "examine": 4, "describe": 4]

    /// Connects to the daemon. Throws ``MeshError/Code-swift.struct/serviceUnavailable`` when none runs.
    init(path: String, patience: Duration = .seconds(10)) throws(MeshError) {
        self.path = path
        self.patience = patience
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw MeshError(.invalidArgument, "the control socket's path is too long: \(path)")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        // Also what `connect` waits for when the daemon accepts nobody (unix(7)).
        Self.setPatience(of: descriptor, SO_SNDTIMEO, patience)
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
            if reason == EAGAIN { throw Self.silent(path) }
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
        wait(patience * (Self.factors[method] ?? 1))
        let answer = try nextObject()
        if let result = answer["result"] { return result }
        throw Self.error(in: answer)
    }

    /// Asks for events; `onEvent` returns whether to go on.
    mutating func stream(
        _ method: String, _ params: JSONValue, onEvent: (JSONValue) -> Bool
    ) throws(MeshError) {
        try send(method, params)
        wait(patience)
        while true {
            let answer = try nextObject()
            // The first line has come; events come when there are some.
            wait(.zero)
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
            if count < 0, errno == EAGAIN { throw Self.silent(path) }
            guard count > 0 else { throw Self.closed }
            bytes = bytes.dropFirst(count)
        }
    }

    private mutating func nextObject() throws(MeshError) -> JSONValue {
        while lines.isEmpty {
            var buffer = [UInt8](repeating: 0, count: 16_384)
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { throw Self.silent(path) }
            guard count > 0 else { throw Self.closed }
            // The daemon is trusted: its answers may be longer than what it accepts.
            lines += buffer.withUnsafeBytes { splitter.lines(adding: .init(rebasing: $0[..<count]), limit: .max) } ?? []
        }
        return try JSONValue(parsing: lines.removeFirst())
    }

    /// From now on an answer may take so long; zero: as long as it likes.
    private func wait(_ time: Duration) {
        Self.setPatience(of: descriptor, SO_RCVTIMEO, time)
    }

    private static func setPatience(of descriptor: Int32, _ option: Int32, _ time: Duration) {
        let milliseconds = Int(time.milliseconds)
        // A `timeval`. To which module its members belong depends on the files that are compiled together with this one
        // (6.3.1): sometimes on one that nobody can import.
        var value = (time_t(milliseconds / 1_000), suseconds_t(milliseconds % 1_000 * 1_000))
        setsockopt(descriptor, SOL_SOCKET, option, &value, socklen_t(MemoryLayout.size(ofValue: value)))
    }

    private static func silent(_ path: String) -> MeshError {
        MeshError(
            .serviceUnavailable,
            "the daemon on \(path) does not answer; look at its log, or restart it if it does nothing at all")
    }

    private static var closed: MeshError {
        MeshError(.serviceUnavailable, "the daemon closed the control connection")
    }
}
