// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshTransportAPI

/// A radio as a transport: answers what the closure says, pushes what the test says.
actor AnsweringRadio: MeshTransport {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private var answers: @Sendable (Data) -> [Data]
    private var frames: AsyncStream<Data>.Continuation?
    private var stream = AsyncStream<Data> { $0.finish() }
    private let linkEvents: @Sendable (LinkEvent) -> Void
    /// Messages that SYNC_NEXT_MESSAGE takes.
    private var messages: [Data] = []
    private(set) var received: [Data] = []
    private(set) var connects = 0
    /// What `send` throws in place of sending; nil to send.
    var sendFailure: MeshError?
    /// Commands with this code are received and answered, and their sending goes on until ``failHeldSend(_:)``.
    private var heldCode: UInt8?
    private var heldSend: CheckedContinuation<Void, any Error>?
    private var isAway = false
    private var isSwallowing = false
    private var swallowed: [CheckedContinuation<Void, Never>] = []
    /// What the next connection carries at most.
    var maximumFrame = 176

    init(_ loop: EventLoop, _ environment: TransportEnvironment, answers: @escaping @Sendable (Data) -> [Data]) {
        self.loop = loop
        self.answers = answers
        linkEvents = environment.linkEvents
    }

    /// What a radio answers: its own info, the time, a battery, and each channel under its own number.
    static func usual(_ command: Data) -> [Data] {
        switch command.first {
        case 0x16: [Data([0x0D, 13])]
        case 0x01: [Data([0x05]) + Data(count: 57) + Data("Test".utf8)]
        case 0x05: [Data([0x09, 1, 2, 3, 4])]
        case 0x14: [Data([0x0C, 0x10, 0x10])]
        case 0x1F: [Data([0x12, command[command.startIndex + 1]]) + Data(count: 48)]
        case 0x38:
            [
                Data([0x18, command[command.startIndex + 1]])
                    + Data(count: command[command.startIndex + 1] == 0 ? 9 : 12)
            ]
        case 0x0A: [Data([0x0A])]
        default: [Data([0x01, 0x01])]
        }
    }

    func answer(with answers: @escaping @Sendable (Data) -> [Data]) {
        self.answers = answers
    }

    /// Messages that wait in the radio; without the push that tells of them.
    func queue(_ frames: [Data]) {
        messages += frames
    }

    func push(_ frame: Data) {
        frames?.yield(frame)
    }

    func vanish() {
        guard frames != nil else { return }
        linkEvents(.down(reason: MeshError(.linkClosedByPeer, "the radio went away")))
        close()
    }

    private func close() {
        frames?.finish()
        frames = nil
        isSwallowing = false
        let senders = swallowed
        swallowed = []
        for sender in senders { sender.resume() }
    }

    /// Until the end of this link frames are taken and their sends do not return.
    func swallowFrames() {
        isSwallowing = true
    }

    /// From now on nothing answers a connect, or something does again.
    func stayAway(_ away: Bool) {
        isAway = away
    }

    func connect() async throws {
        if isAway { throw MeshError(.connectionRefused, "the radio is away") }
        connects += 1
        (stream, frames) = AsyncStream.makeStream(of: Data.self)
        linkEvents(.up(LinkInfo(maximumFrameLength: maximumFrame, peer: "test")))
    }

    func disconnect() {
        guard frames != nil else { return }
        linkEvents(.down(reason: nil))
        close()
    }

    func failSends(_ error: MeshError?) {
        sendFailure = error
    }

    func hold(sendsOf code: UInt8) {
        heldCode = code
    }

    func failHeldSend(_ error: MeshError) {
        heldCode = nil
        heldSend?.resume(throwing: error)
        heldSend = nil
    }

    func limitFrames(_ length: Int) {
        maximumFrame = length
    }

    func send(_ data: Data) async throws {
        if let sendFailure { throw sendFailure }
        received.append(data)
        if isSwallowing {
            await withCheckedContinuation { if frames == nil { $0.resume() } else { swallowed.append($0) } }
            throw MeshError(.linkClosed, "the link was ended before the frame was done")
        }
        if data == Data([0x0A]), !messages.isEmpty {
            frames?.yield(messages.removeFirst())
            return
        }
        for answer in answers(data) { frames?.yield(answer) }
        if heldCode == nil { return }
        try await withCheckedThrowingContinuation { continuation in
            if data.first == heldCode { heldSend = continuation } else { continuation.resume() }
        }
    }

    var receivedData: AsyncStream<Data> { stream }
    var isConnected: Bool { frames != nil }
}
