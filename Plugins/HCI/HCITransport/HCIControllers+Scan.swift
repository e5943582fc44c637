// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI

/// Looking for devices with all controllers: `meshhost scan`.
extension HCIControllers {
    /// Sightings that a slow consumer has not taken yet; older ones are dropped, as newer ones say more.
    private static let bufferedSightings = 256

    /// Devices as they are heard, and those that are connected and so cannot be heard, until the consumer stops. With the
    /// controllers of these devices, and those that are in use. Throws what is wrong with the first if none can be used.
    func scan(_ devices: [HCISettings]) async throws(MeshError) -> AsyncThrowingStream<ScanResult, any Error> {
        for device in devices {
            _ = controller(at: device.controller, bonds: device.bondDirectory, capture: device.capture)
        }
        let (stream, continuation) = AsyncThrowingStream.makeStream(
            of: ScanResult.self, bufferingPolicy: .bufferingNewest(Self.bufferedSightings))
        var scans: [(controller: HCIController, serial: UInt64)] = []
        var failure: MeshError?
        // All at once: one that does not answer takes its time.
        for controller in all { await controller.start() }
        for controller in all {
            do throws(MeshError) {
                scans.append((controller, try await controller.beginScan(continuation)))
            } catch {
                failure = failure ?? error
            }
        }
        continuation.onTermination = { [loop, scans] _ in
            loop.perform {
                for (controller, serial) in scans { controller.assumeIsolated { $0.endScan(serial) } }
            }
        }
        if scans.isEmpty { throw failure ?? Self.noController }
        return stream
    }

    private static var noController: MeshError {
        MeshError(
            .adapterUnavailable,
            "no controller is known: a device of the module hci names one, for example controller = \"unix:/run/hci0\"")
    }
}
