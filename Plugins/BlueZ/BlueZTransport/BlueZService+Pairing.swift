// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshLoop
internal import MeshTransportAPI

/// Pairing by order of a person: `meshhost pair` and `unpair`.
extension BlueZService {
    /// Pairs with a device, over the link that it has or one of its own.
    func pair(_ order: ConnectOrder, _ settings: BLETransportSettings) async throws(MeshError) -> PairingReport {
        await retain()
        do throws(MeshError) {
            let report = try await pairNow(order, settings)
            await releaseAndClose()
            return report
        } catch {
            await releaseAndClose()
            throw error
        }
    }

    private func pairNow(
        _ order: ConnectOrder, _ settings: BLETransportSettings
    ) async throws(MeshError) -> PairingReport {
        let target = order.request.target
        if let peer = peer(target, order.choice), peer.isBonded {
            return PairingReport(address: peer.address.text, name: peer.name, wasBonded: true, usedPasskey: false)
        }
        let path = objects.adapter(order.choice).flatMap { objects.device(target, on: $0.path)?.path }
        if let path, let link = links[path] { return try await pair(over: link, settings) }
        let (link, isOurs) = try await link(order, settings)
        let outcome: Result<PairingReport, MeshError>
        do throws(MeshError) {
            outcome = .success(try await pair(over: link, settings))
        } catch {
            outcome = .failure(error)
        }
        if isOurs { await link.close() } else { await link.letGo() }
        return try outcome.get()
    }

    /// The link that another program made, which goes on afterwards, or one of our own.
    private func link(
        _ order: ConnectOrder, _ settings: BLETransportSettings
    ) async throws(MeshError) -> (BlueZLink, isOurs: Bool) {
        do throws(GATTError) {
            if let link = try await adopt(order) { return (link, false) }
        } catch {
            throw error.error
        }
        let target = order.request.target
        let link = try await loop.within(
            settings.connectionTimeout, "\(target) was not reached within \(settings.connectionTimeout.optionText)"
        ) { () async throws(GATTError) in try await self.connect(order) }
        return (link, true)
    }

    private func pair(
        over link: BlueZLink, _ settings: BLETransportSettings
    ) async throws(MeshError) -> PairingReport {
        let outcome = try await loop.within(
            settings.pairingTimeout, "the pairing took longer than \(settings.pairingTimeout.optionText)"
        ) { () async throws(GATTError) in try await link.pair() }
        let peer = await link.peer
        return PairingReport(
            address: peer.address.text, name: peer.name, wasBonded: outcome.wasBonded, usedPasskey: outcome.usedPasskey)
    }

    /// Forgets a device's keys. Returns whether there were any.
    func unpair(_ target: BLETarget, _ choice: AdapterChoice) async throws(MeshError) -> Bool {
        await retain()
        do throws(GATTError) {
            _ = try usableAdapter(choice)
            let wasBonded = peer(target, choice)?.isBonded == true
            try await removeBond(target, choice)
            await releaseAndClose()
            return wasBonded
        } catch {
            await releaseAndClose()
            throw error.error
        }
    }
}
