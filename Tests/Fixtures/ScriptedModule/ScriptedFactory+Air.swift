// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI
internal import Synchronization

/// What is around: devices to be seen and paired with, and what can be wrong with the adapter.
extension ScriptedFactory: TransportScanning, TransportPairing, TransportExamining, TransportDescribing {
    /// Two that are seen once, then one again and again, nearer each time; nothing while somebody waits for the adapter.
    func scan() async throws -> AsyncThrowingStream<ScanResult, any Error> {
        guard adapter.isOn else { throw MeshError(.adapterUnavailable, "script0 is off; switch it on") }
        let (stream, continuation) = AsyncThrowingStream.makeStream(of: ScanResult.self)
        continuation.yield(ScanResult(address: "aa:1", name: "první", rssi: -70, advertisement: [1, 2, 3]))
        continuation.yield(ScanResult(address: "aa:2", name: "", rssi: nil))
        let radio = Task(executorPreference: loop.taskExecutor) { [loop] in
            for step in 0... {
                continuation.yield(
                    ScanResult(
                        address: "aa:3", name: "MeshCore-\u{1B}[31mroof", rssi: min(-90 + step, -50),
                        advertisement: Self.companionAdvertisement))
                do { try await loop.sleep(for: .milliseconds(20)) } catch { return }
            }
        }
        continuation.onTermination = { _ in radio.cancel() }
        return stream
    }

    /// Devices whose script is `count` are all that is seen then.
    func scan(
        around devices: [TransportSettings]
    ) async throws -> AsyncThrowingStream<ScanResult, any Error> {
        let counting = devices.filter { $0.options.string("script") == "count" }
        guard !counting.isEmpty else { return try await scan() }
        let (stream, continuation) = AsyncThrowingStream.makeStream(of: ScanResult.self)
        for device in counting {
            continuation.yield(
                ScanResult(address: device.options.string("address"), name: device.device, rssi: nil))
        }
        return stream
    }

    /// Flags, and the 128-bit UUID of the Nordic UART service.
    private static let companionAdvertisement: [UInt8] = [
        2, 0x01, 0x06, 17, 0x07,
        0x9E, 0xCA, 0xDC, 0x24, 0x0E, 0xE5, 0xA9, 0xE0, 0x93, 0xF3, 0xA3, 0xB5, 0x01, 0x00, 0x40, 0x6E,
    ]

    func pair(_ settings: TransportSettings) async throws -> PairingReport {
        let address = settings.options.string("address")
        switch settings.options.string("script") {
        case "hang":
            settings.environment.log(.info, "pairing")
            do {
                try await loop.sleep(for: .seconds(3_600))
            } catch {
                // Some clean-up that takes its time.
                await Task { [loop] in try? await loop.sleep(for: .milliseconds(20)) }.value
                settings.environment.log(.info, "cleaned up")
                throw MeshError(.cancelled, "cancelled")
            }
        case "fail":
            throw MeshError(
                MeshError.Code(slug: settings.options.string("code")) ?? .authenticationFailed, "the pin is wrong")
        default: break
        }
        let isNew = bonds.addresses.withLock { $0.insert(address).inserted }
        return PairingReport(
            address: address, name: "MeshCore-roof", wasBonded: !isNew,
            usedPasskey: isNew && !settings.options.string("pin").isEmpty)
    }

    func unpair(_ settings: TransportSettings) async throws -> Bool {
        bonds.addresses.withLock { $0.remove(settings.options.string("address")) != nil }
    }

    func describe(_ adapter: String) async throws -> JSONValue {
        guard adapter == "script0" else { throw MeshError(.adapterUnavailable, "there is no \(adapter)") }
        return ["adapter": .string(adapter), "version": 9]
    }

    func examine(_ devices: [TransportSettings]) async -> [Finding] {
        adapter.switchOn()
        return [Finding(.ok, "script0", "is on")]
            + devices.map {
                $0.options.string("script") == "fail"
                    ? Finding(.problem, $0.device, "is set to fail", advice: "choose another script")
                    : Finding(.note, $0.device, "plays \($0.options.string("script"))")
            }
    }
}
