// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
internal import MeshLoop
internal import MeshTransportAPI

/// What the machine orders.
extension BLETransport {
    func run(_ action: Machine.Action) {
        switch action {
        case .enterPhase(let phase): report(.phase(phase))
        case .observeBluetooth: observeBluetooth()
        case .stopObservingBluetooth:
            observationNumber += 1
            observation = nil
        case .tellBluetooth(let state, let cameBack):
            handlers.bluetoothState?(state)
            if cameBack { handlers.bluetoothPoweredOn?() }
        case .reportAdapter(let isAvailable): report(.adapter(available: isAvailable))
        case .start(let operation, let generation, let link): start(operation, generation, on: link)
        case .cancelOperation(let generation): operations[generation]?.cancel()
        case .closeStrayLink(let generation): closeStray(generation)
        case .bringUp(let description): bringUp(description)
        case .endSession(let failure): endSession(failure)
        case .succeed(let waiter): waiter.resume(returning: nil)
        case .fail(let waiter, let failure): waiter.resume(returning: error(failure))
        case .refuseConnect(let waiter): waiter.resume(returning: refusal)
        case .tellReconnected: handlers.reconnected?()
        case .tellAutoReconnecting(let failure):
            handlers.autoReconnecting?(failure.map { MeshError($0, of: subject) })
        case .tellDisconnected(let failure): handlers.disconnected?(failure.map { MeshError($0, of: subject) })
        case .startWrite(let frame, let generation): start(frame, generation)
        case .succeedWrite(let frame): frame.sender.resume(returning: nil)
        case .failWrite(let frame, let failure):
            counters.writesFailed += 1
            frame.sender.resume(returning: MeshError(failure, of: subject))
        case .warnPairedWithoutPasskey:
            environment.log(
                .warning, "The radio was paired with and asked for no PIN, though one is configured; is it set there?",
                [("peer", subject.name)])
        case .tellBondIsReplaced:
            environment.log(.info, "The bond with the radio is replaced.", [("peer", subject.name)])
        case .changeTarget: lastPeer = nil
        }
    }

    private func error(_ failure: BLELinkFailure) -> MeshError {
        let error = MeshError(failure, of: subject)
        if error.code != .cancelled { lastError = error }
        return error
    }

    private var refusal: MeshError {
        MeshError(
            .invalidArgument, "\(subject.name) is connected already, or a connection is being made or ended",
            context: .init(operation: "connect", peer: subject.name))
    }

    // MARK: Bluetooth

    private func observeBluetooth() {
        observationNumber += 1
        let number = observationNumber
        _ = Task(executorPreference: loop.taskExecutor) { await self.observeBluetooth(number) }
    }

    private func observeBluetooth(_ number: UInt64) async {
        adapterName = await central.adapterName
        let token = await central.observeState { [weak self] state in
            self?.assumeIsolated { $0.bluetoothChanged(state, number) }
        }
        // Nobody may want it any more.
        if number == observationNumber { observation = token }
    }

    private func bluetoothChanged(_ state: BluetoothState, _ number: UInt64) {
        guard number == observationNumber else { return }
        perform(machine.bluetoothStateChanged(state, now: loop.now))
    }

    // MARK: The session

    private func bringUp(_ description: BLELinkDescription) {
        guard let link = links[description.generation] else { return }
        link.description = description
        link.inbox.open(limit: description.maximumWriteLength, peer: subject.name)
        link.since = loop.now
        up = link
        counters.connections += 1
        lastError = nil
        report(.up(LinkInfo(maximumFrameLength: description.maximumWriteLength, peer: subject.name)))
    }

    private func endSession(_ failure: BLELinkFailure?) {
        guard let link = up else { return }
        up = nil
        link.description = nil
        link.inbox.reportDrops()
        let reason = failure.map { error($0) }
        report(.down(reason: reason))
        // What came before a loss is delivered; who asks for the end wants no more.
        link.inbox.queue.finish(discarding: failure == nil)
    }

    // MARK: Receiving

    public var receivedData: AsyncStream<Data> {
        guard let inbox = up?.inbox.queue else { return AsyncStream { $0.finish() } }
        return AsyncStream(unfolding: { await self.nextFrame(from: inbox) })
    }

    private func nextFrame(from inbox: FrameQueue) async -> Data? {
        await inbox.next(isolation: self) { [loop] in loop.perform($0) }
    }

    public func deliverFrames(to handler: @escaping @Sendable (Data) -> Bool) {
        up?.inbox.queue.deliver(to: handler)
    }

    public func resumeDelivery() {
        up?.inbox.queue.resumeDelivery()
    }
}
