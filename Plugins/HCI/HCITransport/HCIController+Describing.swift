// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// Those who ask what the controller is.
extension HCIController {
    /// What the controller is, or why it cannot be used: as soon as one of the two is known. Opens it if need be.
    func describe() async throws(MeshError) -> ControllerDescriptor {
        start()
        let serial = takeSerial()
        let result: Result<ControllerDescriptor, MeshError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if let descriptor = self.descriptor { return continuation.resume(returning: .success(descriptor)) }
                if let failure = self.reopening.failure { return continuation.resume(returning: .failure(failure)) }
                self.inquirers[serial] = continuation
                if Task.isCancelled { self.stopInquiring(serial) }
            }
        } onCancel: { [loop] in
            loop.perform { self.assumeIsolated { $0.stopInquiring(serial) } }
        }
        return try result.get()
    }

    private func stopInquiring(_ serial: UInt64) {
        inquirers.removeValue(forKey: serial)?.resume(
            returning: .failure(MeshError(.cancelled, "the controller at \(port) has not answered yet")))
    }

    func tellInquirers(_ result: Result<ControllerDescriptor, MeshError>) {
        let waiting = inquirers.values
        inquirers = [:]
        for continuation in waiting { continuation.resume(returning: result) }
    }
}
