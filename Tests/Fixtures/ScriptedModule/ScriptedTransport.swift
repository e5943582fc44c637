// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc
internal import MeshLoop
internal import MeshTransportAPI

/// A transport without a device.
actor ScriptedTransport: TransportDiagnosing {
    private let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let settings: TransportSettings
    private let adapter: ScriptedAdapter
    private var stream: AsyncStream<Data>?
    private var continuation: AsyncStream<Data>.Continuation?
    private var sent = 0
    private var attempts = 0

    init(loop: EventLoop, settings: TransportSettings, adapter: ScriptedAdapter) {
        self.loop = loop
        self.adapter = adapter
        self.settings = settings
    }

    private var script: String { settings.options.string("script") }

    private var scriptedError: MeshError {
        MeshError(MeshError.Code(slug: settings.options.string("code")) ?? .internalError, "as the script says")
    }

    func connect() async throws {
        settings.environment.log(.info, "connecting", [("script", script)])
        settings.environment.linkEvents(.phase(.connecting))
        attempts += 1
        switch script {
        case "hang":
            do {
                try await loop.sleep(for: .seconds(3_600))
            } catch {
                // Some clean-up that takes its time.
                await Task { [loop] in try? await loop.sleep(for: .milliseconds(20)) }.value
                settings.environment.log(.info, "cleaned up")
                throw MeshError(.cancelled, "cancelled")
            }
        case "fail": throw scriptedError
        case "adapter" where attempts == 1:
            settings.environment.linkEvents(.adapter(available: false))
            adapter.whenItIsOn { [settings] in
                settings.environment.linkEvents(.phase(.idle))
                settings.environment.linkEvents(.adapter(available: true))
            }
            throw MeshError(.adapterUnavailable, "the adapter is off")
        default: break
        }
        let (stream, continuation) = AsyncStream<Data>.makeStream()
        self.stream = stream
        self.continuation = continuation
        settings.environment.linkEvents(.up(LinkInfo(maximumFrameLength: 176, peer: "script:\(script)")))
        let count = UInt32(clamping: settings.options.int("count"))
        switch script {
        // How often it was connected: by this transport, not only by this link.
        case "count": continuation.yield(Self.frame(UInt32(attempts)))
        case "burst": for number in 0..<count { continuation.yield(Self.frame(number)) }
        case "burst_thread":
            Task.detached { for number in 0..<count { continuation.yield(Self.frame(number)) } }
        default: break
        }
    }

    static func frame(_ number: UInt32) -> Data {
        var data = Data(count: 100)
        withUnsafeBytes(of: number.bigEndian) { data.replaceSubrange(0..<4, with: $0) }
        return data
    }

    func disconnect() async {
        guard let continuation else { return }
        self.continuation = nil
        settings.environment.linkEvents(.down(reason: nil))
        continuation.finish()
    }

    func send(_ data: Data) async throws {
        guard let continuation else { throw MeshError(.notConnected, "no link") }
        let pause = settings.options.duration("pause")
        if pause > .zero { try await loop.sleep(for: pause) }
        sent += 1
        if script == "lose" {
            self.continuation = nil
            continuation.yield(data)
            settings.environment.linkEvents(.down(reason: scriptedError))
            continuation.finish()
            return
        }
        if data == Data("bad".utf8) { throw MeshError(.operationTimeout, "no acknowledgement") }
        continuation.yield(data)
    }

    var receivedData: AsyncStream<Data> { stream ?? AsyncStream { $0.finish() } }
    var isConnected: Bool { continuation != nil }
    func diagnostics() -> JSONValue { ["sent": .int(Int64(sent))] }
}
