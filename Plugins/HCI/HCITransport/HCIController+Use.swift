// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// Whether the controller can be used, and if not, why.
extension HCIController {
    /// Then whoever asks for the first time is told that it has not answered yet.
    private static let firstAnswerTime = Duration.seconds(5)

    var state: BluetoothState { descriptor == nil ? .unusable(trouble) : .poweredOn }

    private var trouble: String {
        if let failure = reopening.failure { return failure.message }
        if let resetCause { return HCIOutage.reset(resetCause).error(port).message }
        return "the controller at \(port) has not answered yet"
    }

    func observe(_ observer: @escaping @Sendable (BluetoothState) -> Void) async -> UInt64 {
        start()
        // Whoever does not wait until it is known has the right words meanwhile.
        if !isKnown { observer(state) }
        await settle()
        let serial = takeSerial()
        observers[serial] = observer
        observer(state)
        return serial
    }

    func endObservation(_ serial: UInt64) {
        observers[serial] = nil
    }

    func tellState() {
        if isKnown { settled() }
        for observer in observers.values { observer(state) }
    }

    /// Begins to use the controller, and returns when it is known whether it can be.
    func settle() async {
        start()
        if isKnown { return }
        let timer = LoopTimer(loop)
        timer.schedule(after: Self.firstAnswerTime) { self.settled() }
        await withCheckedContinuation { continuation in
            if self.isKnown { continuation.resume() } else { self.settlers.append(continuation) }
        }
        timer.cancel()
    }

    /// Whether it is known if the controller can be used.
    private var isKnown: Bool { descriptor != nil || reopening.failure != nil }

    func settled() {
        let waiting = settlers
        settlers = []
        for waiter in waiting { waiter.resume() }
    }

    /// What the controller is and can do, when it can be used.
    func usable(_ operation: HCIOperation, _ peer: String) async throws(GATTError) -> ControllerDescriptor {
        await settle()
        guard let descriptor else { throw unusable(operation, peer) }
        return descriptor
    }

    func unusable(_ operation: HCIOperation, _ peer: String) -> GATTError {
        GATTError(.bluetoothUnavailable, .adapterUnavailable, trouble, operation, peer)
    }
}
