// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshTransportAPI

@testable import MeshRuntime

/// Something a test waits for: values come in as they happen and are taken in that order.
actor Inbox<Value: Sendable> {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private var values: [Value] = []
    private var waiters: [CheckedContinuation<Value, Never>] = []

    init(_ loop: EventLoop) { self.loop = loop }

    var count: Int { values.count }

    func put(_ value: Value) {
        if waiters.isEmpty { values.append(value) } else { waiters.removeFirst().resume(returning: value) }
    }

    func take() async -> Value {
        if !values.isEmpty { return values.removeFirst() }
        return await withCheckedContinuation { waiters.append($0) }
    }
}

/// A transport whose every move is made by the test.
actor ScriptedTransport: MeshTransport {
    enum Call: Equatable {
        case connect
        case disconnect
        case send(Data)
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let calls: Inbox<Call>
    nonisolated let environment: TransportEnvironment
    private var connecting: CheckedContinuation<MeshError?, Never>?
    private var stream = AsyncStream<Data>.makeStream()
    private(set) var isConnected = false
    private(set) var connectsUnderWay = 0
    private(set) var mostConnectsUnderWay = 0
    /// Connects at once, without the test's help.
    private var isWilling = false
    /// Does not end when it is cancelled.
    private var isStubborn = false
    private var greeting: Data?
    private var earlyAnswer: MeshError??

    init(_ loop: EventLoop, _ environment: TransportEnvironment) {
        self.loop = loop
        self.environment = environment
        calls = Inbox(loop)
    }

    /// A frame that is there as soon as the link is.
    func greet(_ text: String) { greeting = Data(text.utf8) }
    func beWilling() { isWilling = true }
    func beStubborn() { isStubborn = true }

    func connect() async throws {
        await calls.put(.connect)
        connectsUnderWay += 1
        mostConnectsUnderWay = max(mostConnectsUnderWay, connectsUnderWay)
        defer { connectsUnderWay -= 1 }
        if !isWilling {
            let failure = await withTaskCancellationHandler {
                await withCheckedContinuation {
                    connecting = $0
                    // The test may have been faster.
                    if let answer = earlyAnswer { answerConnect(answer) }
                }
            } onCancel: {
                loop.perform { self.assumeIsolated { $0.cancelConnect() } }
            }
            if let failure { throw failure }
        }
        stream = AsyncStream.makeStream()
        isConnected = true
        if let greeting { stream.continuation.yield(greeting) }
        environment.linkEvents(.up(LinkInfo(maximumFrameLength: 172, peer: "script")))
    }

    private func cancelConnect() {
        if !isStubborn, connecting != nil { answerConnect(MeshError(.cancelled, "cancelled")) }
    }

    func answerConnect(_ failure: MeshError? = nil) {
        earlyAnswer = connecting == nil ? .some(failure) : nil
        connecting?.resume(returning: failure)
        connecting = nil
    }

    func disconnect() async {
        await calls.put(.disconnect)
        guard isConnected else { return }
        isConnected = false
        environment.linkEvents(.down(reason: nil))
        stream.continuation.finish()
    }

    /// The device goes away.
    func lose(_ reason: MeshError?) {
        guard isConnected else { return }
        isConnected = false
        if let reason { environment.linkEvents(.down(reason: reason)) }
        stream.continuation.finish()
    }

    func receive(_ text: String) { stream.continuation.yield(Data(text.utf8)) }
    func send(_ data: Data) async throws { await calls.put(.send(data)) }
    var receivedData: AsyncStream<Data> { stream.stream }
}

/// A session that records what it is told; the test answers its handshakes.
actor ScriptedSession: LinkSession {
    enum Told: Equatable {
        case established(UInt64)
        case frame(String)
        case lost(MeshError?)
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let told: Inbox<Told>
    private(set) var link: EstablishedLink?
    private var handshake: CheckedContinuation<MeshError?, Never>?
    private var earlyAnswer: MeshError??
    private let isWilling: Bool

    init(_ loop: EventLoop, isWilling: Bool = false) {
        self.loop = loop
        self.isWilling = isWilling
        told = Inbox(loop)
    }

    nonisolated func linkOpened(_ link: EstablishedLink) {
        assumeIsolated { $0.link = link }
        told.assumeIsolated { $0.put(.established(link.generation)) }
    }

    func linkEstablished(_ link: EstablishedLink) async throws(MeshError) {
        if isWilling { return }
        let failure = await withTaskCancellationHandler {
            await withCheckedContinuation { handshake = $0 }
        } onCancel: {
            loop.perform { self.assumeIsolated { $0.cancel() } }
        }
        if let failure { throw failure }
    }

    private func cancel() {
        if handshake != nil { answer(MeshError(.cancelled, "cancelled")) }
    }

    func answer(_ failure: MeshError? = nil) {
        earlyAnswer = handshake == nil ? .some(failure) : nil
        handshake?.resume(returning: failure)
        handshake = nil
    }

    nonisolated func frameReceived(_ frame: Data) {
        told.assumeIsolated { $0.put(.frame(String(decoding: frame, as: UTF8.self))) }
    }

    nonisolated func linkLost(reason: MeshError?) {
        told.assumeIsolated { $0.put(.lost(reason)) }
    }

    func linkEnded() async {}
}
