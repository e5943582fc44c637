// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI

/// A link to a radio that answers each frame at once, as a script says.
actor ScriptedRadio: MeshTransport {
    /// The answers to a frame; the number says how often a frame of this kind has come, from 1 on. Nil for the usual ones.
    typealias Script = @Sendable (_ frame: Data, _ number: Int) -> [Data]?

    private let script: Script
    private let pipelines: Bool
    private var frames: AsyncStream<Data>?
    private var continuation: AsyncStream<Data>.Continuation?
    private var counts: [UInt8: Int] = [:]
    private var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    private(set) var sent: [Data] = []
    /// How often the link was made.
    private(set) var links = 0

    init(pipelines: Bool = false, script: @escaping Script = { _, _ in nil }) {
        self.script = script
        self.pipelines = pipelines
    }

    /// What a radio without contacts and messages says.
    static func usual(_ frame: Data) -> [Data] {
        switch frame.first {
        case 22: [Golden.deviceInfo]
        case 1: [Golden.selfInfo]
        case 5: [Golden.time]
        case 6: [Golden.ok]
        case 4: [hex("0200000000"), hex("0400000000")]
        case 10: [hex("0a")]
        case 20: [hex("0c8000")]
        default: []
        }
    }

    // MARK: What a test does

    /// The radio says something.
    func say(_ frames: Data...) {
        for frame in frames { continuation?.yield(frame) }
    }

    /// The link is lost.
    func vanish() {
        continuation?.finish()
        continuation = nil
    }

    /// Waits until so many frames have been sent, and returns them as hexadecimal digits.
    @discardableResult
    func sent(_ count: Int) async -> [String] {
        if sent.count < count { await withCheckedContinuation { waiters.append((count, $0)) } }
        return sent.map { CompanionFrame.hex($0) }
    }

    // MARK: MeshTransport

    func connect() async throws {
        (frames, continuation) = AsyncStream.makeStream(of: Data.self)
        links += 1
    }

    func disconnect() async {
        vanish()
    }

    func send(_ data: Data) async throws {
        guard continuation != nil else { throw MeshError(.notConnected, "there is no link") }
        sent.append(data)
        let kind = data.first ?? 0
        counts[kind, default: 0] += 1
        for answer in script(data, counts[kind] ?? 0) ?? Self.usual(data) { continuation?.yield(answer) }
        let ready = waiters.filter { $0.count <= sent.count }
        waiters.removeAll { $0.count <= sent.count }
        for waiter in ready { waiter.continuation.resume() }
    }

    var supportsPipelinedReads: Bool { pipelines }
    var receivedData: AsyncStream<Data> { frames ?? AsyncStream { $0.finish() } }
    var isConnected: Bool { continuation != nil }
}
