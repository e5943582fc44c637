// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshDBus
internal import MeshLoop
internal import MeshTransportAPI

/// Switching adapters on, for devices whose options allow it.
extension BlueZService {
    /// From `Powered` set to an adapter that works: about 1.5 s for a USB dongle (read in habluetooth 6.26.7).
    private static let powerOnTime = Duration.seconds(3)

    func allowPower(_ choice: AdapterChoice) {
        powerChoices.insert(choice)
    }

    /// Whether a device whose options allow it uses this adapter.
    func allowsPower(_ adapter: String) -> Bool {
        powerChoices.contains { objects.adapter($0)?.path == adapter }
    }

    /// Switches the adapter on without anybody waiting for it.
    func powerOnLater(_ choice: AdapterChoice) {
        guard let adapter = objects.adapter(choice)?.path, poweringOn[adapter] == nil else { return }
        poweringOn[adapter] = Task(executorPreference: loop.taskExecutor) { await self.powerOnNow(adapter) }
    }

    private func powerOnNow(_ adapter: String) async {
        await powerOn(adapter)
        poweringOn[adapter] = nil
    }

    /// Switches the adapter on and waits until it is, for a while. What comes of it shows in its state.
    func powerOn(_ adapter: String) async {
        log(.info, "the adapter is switched on", [("adapter", adapter)])
        do throws(DBusError) {
            try await set(adapter, BlueZNames.adapter, "Powered", .bool(true))
            _ = await wait(upTo: Self.powerOnTime) { $0.objects.adapters[adapter]?.isPowered != false }
        } catch {
            let failure = BlueZFailure(error, during: .powerOn)
            log(.notice, "the adapter could not be switched on", [("adapter", adapter), ("error", error.description)])
            if failure == .adapterBlocked { blocked.insert(adapter) }
            changed()
        }
    }
}
