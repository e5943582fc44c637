// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI

/// A link whose other end is a test.
///
/// ```swift
/// let mock = MockTransport()
/// let session = Session(transport: mock)
/// try await session.start()
/// await mock.simulateReceive(packet)
/// #expect(await mock.sentData == [Data([0x16, 0x03])])
/// ```
///
/// It needs no event loop and may be used from any task.
public actor MockTransport: TransportDiagnosing {
    private enum State {
        case idle
        /// Waits for ``disconnect()`` or cancellation: a connect that was told to hang.
        case hanging(MockInbox)
        case up(MockInbox)
    }

    private enum ConnectFault {
        case fail(MeshError)
        case hang
    }

    /// Frames kept for a consumer that is slower than the test; more are counted as dropped.
    private static let inboxLimit = 1_024

    private let maximumFrameLength: Int
    private let environment: TransportEnvironment
    private var state = State.idle
    private var connectFaults: [ConnectFault] = []
    private var sendsToDrop = 0
    private var sendDelay = Duration.zero
    /// Of sends that are held up.
    private var pauses: [Task<Void, Never>] = []
    private var sendFaults: [Int: MeshError] = [:]
    private var sendCount = 0
    private var sentWaiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []

    /// The frames that were sent, without those that were dropped or failed.
    public private(set) var sentData: [Data] = []
    /// The frames that ``dropNextSends(_:)`` swallowed.
    public private(set) var droppedData: [Data] = []

    /// `maximumFrameLength` is in bytes; the default is that of companion radios.
    public init(
        maximumFrameLength: Int = 176,
        environment: TransportEnvironment = TransportEnvironment(log: .none, linkEvents: { _ in })
    ) {
        self.maximumFrameLength = maximumFrameLength
        self.environment = environment
    }

    // MARK: What a test does as the device

    /// The device sends a frame. Without a connection nobody hears it.
    public func simulateReceive(_ data: Data) {
        guard case .up(let inbox) = state else { return }
        if !inbox.put(data) { environment.linkEvents(.framesDropped(count: 1)) }
    }

    /// The device answers OK, with a number behind it as some forks do.
    public func simulateOK(value: UInt32? = nil) {
        simulateReceive(Data(value.map { SimulatedFrame.number(0x00, $0) } ?? SimulatedFrame.ok))
    }

    /// The device answers with an error (companion-protocol §1.5: 1 unsupported, 2 not found, …).
    public func simulateError(code: UInt8) {
        simulateReceive(Data([0x01, code]))
    }

    /// Forgets ``sentData`` and ``droppedData``.
    public func clearSentData() {
        sentData = []
        droppedData = []
    }

    /// Waits until ``sentData`` holds at least `count` frames, and returns it.
    public func waitForSentData(count: Int) async -> [Data] {
        await withCheckedContinuation {
            if sentData.count < count { sentWaiters.append((count, $0)) } else { $0.resume() }
        }
        return sentData
    }

    // MARK: Faults

    /// The next `count` frames are lost on the way; their senders do not notice.
    public func dropNextSends(_ count: Int) {
        sendsToDrop = count
    }

    /// Each `send` returns that much later, from now on, or fails when the link ends.
    public func delaySends(by delay: Duration) {
        sendDelay = delay
    }

    /// The `number`-th `send` from now fails, 1 being the next.
    public func failSend(
        number: Int = 1, with error: MeshError = MeshError(.operationTimeout, "simulated write failure")
    ) {
        sendFaults[sendCount + number] = error
    }

    /// The link is lost now.
    public func vanish(reason: MeshError = MeshError(.linkClosedByPeer, "the simulated device vanished")) {
        end(reason: reason)
    }

    /// The next `count` connects fail.
    public func failNextConnects(
        _ count: Int = 1, with error: MeshError = MeshError(.connectionRefused, "simulated refusal")
    ) {
        for _ in 0..<count { connectFaults.append(.fail(error)) }
    }

    /// The next `connect` waits until it is cancelled or ``disconnect()`` is called.
    public func hangNextConnect() {
        connectFaults.append(.hang)
    }

    // MARK: MeshTransport

    public func connect() async throws {
        guard case .idle = state else {
            throw MeshError(.invalidArgument, "the mock is connected already, or connecting")
        }
        environment.linkEvents(.phase(.connecting))
        do throws(MeshError) {
            try await meetConnectFault()
            if Task.isCancelled { throw cancelled }
        } catch {
            environment.linkEvents(.phase(.idle))
            throw error
        }
        state = .up(MockInbox(limit: Self.inboxLimit))
        environment.linkEvents(.phase(.connected))
        environment.linkEvents(.up(LinkInfo(maximumFrameLength: maximumFrameLength, peer: "mock")))
    }

    private func meetConnectFault() async throws(MeshError) {
        guard !connectFaults.isEmpty else { return }
        switch connectFaults.removeFirst() {
        case .fail(let error): throw error
        case .hang:
            let gate = MockInbox(limit: 0)
            state = .hanging(gate)
            _ = await gate.next()
            state = .idle
            throw cancelled
        }
    }

    private var cancelled: MeshError { MeshError(.cancelled, "the connection attempt was cancelled") }

    public func disconnect() async {
        switch state {
        case .idle: break
        case .hanging(let gate): gate.finish(discarding: true)
        case .up:
            environment.linkEvents(.phase(.disconnecting))
            end(reason: nil)
        }
    }

    private func end(reason: MeshError?) {
        guard case .up(let inbox) = state else { return }
        state = .idle
        for pause in pauses { pause.cancel() }
        environment.linkEvents(.down(reason: reason))
        inbox.finish(discarding: reason == nil)
        environment.linkEvents(.phase(.idle))
    }

    public func send(_ data: Data) async throws {
        guard case .up(let inbox) = state else { throw MeshError(.notConnected, "the mock is not connected") }
        if data.isEmpty { throw MeshError(.invalidArgument, "an empty frame cannot be sent") }
        if data.count > maximumFrameLength {
            throw MeshError(.frameTooLong, "a frame of \(data.count) bytes exceeds \(maximumFrameLength)")
        }
        sendCount += 1
        if let error = sendFaults.removeValue(forKey: sendCount) { throw error }
        if sendsToDrop > 0 {
            sendsToDrop -= 1
            droppedData.append(data)
        } else {
            // Taken when called, so that frames keep their order; a delay only holds up the sender.
            sentData.append(data)
            resumeSentWaiters()
        }
        if sendDelay > .zero {
            do { try await holdUp(for: sendDelay) } catch { throw MeshError(wrapping: error) }
            guard case .up(let current) = state, current === inbox else {
                throw MeshError(.linkClosed, "the mock link closed meanwhile")
            }
        }
    }

    /// Returns after `delay`, or when the link ends.
    private func holdUp(for delay: Duration) async throws(CancellationError) {
        let pause = Task { () -> Void in try? await Task.sleep(for: delay) }
        pauses.append(pause)
        await withTaskCancellationHandler {
            await pause.value
        } onCancel: {
            pause.cancel()
        }
        pauses.removeAll { $0 == pause }
        if Task.isCancelled { throw CancellationError() }
    }

    private func resumeSentWaiters() {
        let ready = sentWaiters.filter { $0.count <= sentData.count }
        sentWaiters.removeAll { $0.count <= sentData.count }
        for waiter in ready { waiter.continuation.resume() }
    }

    public var receivedData: AsyncStream<Data> {
        guard case .up(let inbox) = state else { return AsyncStream { $0.finish() } }
        return inbox.stream
    }

    public var isConnected: Bool {
        if case .up = state { true } else { false }
    }

    public var supportsPipelinedReads: Bool { true }

    public func diagnostics() -> JSONValue {
        ["peer": "mock", "connected": .bool(isConnected), "frames_sent": .int(Int64(sentData.count))]
    }
}
