// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc
internal import MeshConfig
internal import MeshCrypto
internal import MeshLoop
internal import MeshRuntime
internal import MeshSharing
internal import MeshTransportAPI

extension HostProgram {
    /// `meshhost bridge`: runs until SIGTERM or SIGINT.
    func runBridge(_ options: BridgeOptions) -> ExitStatus {
        let logWriter = LogWriter(level: isQuiet ? .error : .notice, environment: environment)
        let loop = EventLoop()
        let program = BridgeProgram(
            loop: loop, options: options, isJSON: isJSON, log: logWriter.sink, environment: environment)
        let outcome = BridgeProgram.Outcome()
        // The task starts on the loop and ends with it: `run` waits for both.
        _ = program.assumeIsolated { program in
            Task(executorPreference: program.loop.taskExecutor) {
                do throws(MeshError) {
                    try await program.run()
                } catch {
                    outcome.error = error
                }
                program.loop.stop()
            }
        }
        loop.run()
        try? loop.shutDown()
        guard let error = outcome.error else { return .ok }
        Terminal.complain("meshhost: \(error.message)")
        return Self.status(of: error)
    }
}

/// A bridge as a program: its settings read, its events told, its end awaited.
private actor BridgeProgram {
    /// How it ended. Sendable: written on the loop's thread, read by it after the loop has ended.
    final class Outcome: @unchecked Sendable {
        var error: MeshError?
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let options: BridgeOptions
    private let isJSON: Bool
    private let log: LogSink
    private let environment: [String: String]
    private var events: UInt64 = 0
    private var signals: [LoopSignal] = []
    private var end: CheckedContinuation<Void, Never>?
    private var isStopping = false

    init(loop: EventLoop, options: BridgeOptions, isJSON: Bool, log: LogSink, environment: [String: String]) {
        self.loop = loop
        self.options = options
        self.isJSON = isJSON
        self.log = log
        self.environment = environment
    }

    func run() async throws(MeshError) {
        do throws(LoopError) {
            signals = [
                try LoopSignal(loop, SIGTERM) { self.stop() }, try LoopSignal(loop, SIGINT) { self.stop() },
            ]
        } catch {
            throw MeshError(.internalError, "cannot watch signals", cause: error)
        }
        defer { signals = [] }
        let settings = try await settings()
        if settings.token != nil, settings.tls == nil, SocketAddress(ip: settings.host, port: 0)?.isLoopback != true {
            log(.warning, "without TLS, what follows the proof of the token can be read and changed on its way")
        }
        let bridge = ShareBridge(loop: loop, settings: settings) { event in
            self.assumeIsolated { $0.tell(event) }
        }
        do throws(MeshError) {
            try await bridge.start()
        } catch {
            await bridge.stop()
            throw error
        }
        await withCheckedContinuation { continuation in
            if isStopping { continuation.resume() } else { end = continuation }
        }
        await bridge.stop()
    }

    private func stop() {
        isStopping = true
        end?.resume()
        end = nil
    }

    // MARK: Settings

    private func settings() async throws(MeshError) -> BridgeSettings {
        var settings = BridgeSettings(
            host: options.remote.host, port: options.remote.port, addresses: try await addresses())
        settings.tls = try trust()
        if let token = options.token {
            let secret = try SecretReference.file(token.secretFile).resolve(SecretSource(environment: environment))
            settings.token = BridgeSettings.Token(name: token.name, secret: secret)
        }
        return settings
    }

    private func addresses() async throws(MeshError) -> [SocketAddress] {
        switch options.listen {
        case .unix(let path): return [SocketAddress(unixPath: path)]
        case .tcp(let endpoint):
            let isLocalName = endpoint.host.lowercased() == "localhost"
            let addresses =
                isLocalName
                ? (try? await loop.resolve(host: endpoint.host, port: endpoint.port)) ?? []
                : [SocketAddress(ip: endpoint.host, port: endpoint.port)].compactMap(\.self)
            guard !addresses.isEmpty, addresses.allSatisfy(\.isLoopback) else {
                throw MeshError(
                    .invalidArgument,
                    "--listen \(endpoint.host): a bridge serves programs of this machine only; write "
                        + "127.0.0.1:\(endpoint.port), [::1]:\(endpoint.port) or the path of a socket")
            }
            return addresses
        }
    }

    private func trust() throws(MeshError) -> TLSContext.Trust? {
        switch options.trust {
        case nil: nil
        case .system: .system
        case .pinned(let digest): .pinned(sha256: digest)
        case .authorities(let file): .authorities(try PEMFile.read(file))
        }
    }

    // MARK: Events

    private func tell(_ event: BridgeEvent) {
        switch event {
        case .listening(let address):
            tell("bridge.listening", ["listen": .string(address), "to": .string(remote)])
            log(.notice, "listening", [("listen", address), ("to", remote)])
        case .opened(let client, let peer, let tls):
            tell(
                "bridge.open",
                [
                    "client": .int(Int64(clamping: client)), "peer": .string(peer),
                    "tls": tls.map { .string($0) } ?? .null,
                ])
            log(.notice, "a client reaches the share", [("client", "\(client)"), ("peer", peer)])
        case .closed(let client, let side):
            tell("bridge.close", ["client": .int(Int64(clamping: client)), "by": .string(side.rawValue)])
            log(.notice, "a client's connection was closed", [("client", "\(client)"), ("by", side.rawValue)])
        case .failed(let client, let error):
            tell(
                "bridge.fail",
                [
                    "client": .int(Int64(clamping: client)), "code": .string(error.code.slug),
                    "message": .string(error.message),
                ])
            log(.error, error.message, [("client", "\(client)"), ("code", error.code.slug)])
        }
    }

    private func tell(_ type: EventType, _ data: [String: JSONValue]) {
        guard isJSON else { return }
        events += 1
        let event = HostEvent(
            sequence: events, time: .sinceEpoch, device: nil, type: type, payload: .json(.object(data)))
        Terminal.write(event.json.text() + "\n")
    }

    private var remote: String {
        let host = options.remote.host
        return host.contains(":") ? "[\(host)]:\(options.remote.port)" : "\(host):\(options.remote.port)"
    }
}
