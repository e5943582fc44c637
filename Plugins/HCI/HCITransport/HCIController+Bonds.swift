// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshRuntime
internal import MeshTransportAPI

/// The keys of devices that were paired with, and where they are stored.
extension HCIController {
    func bond(of peer: DeviceAddress) -> Bond? {
        descriptor.flatMap { book[$0.ownAddress, peer] }
    }

    func store(_ bond: Bond) {
        guard let descriptor else { return }
        book[descriptor.ownAddress, bond.peer] = bond
        attempts.pairingSucceeded(bond.peer)
        saveBonds()
    }

    /// Forgets a device, and ends the link to it. One that is known by its name only is the one that was last found by it.
    func removeBond(_ target: BLETarget) async throws(GATTError) {
        // Bonds belong to the controller's address, which nobody knows before it is there.
        guard let own = descriptor?.ownAddress else { throw .controllerGone("\(port)", .pair, target.description) }
        let isMeant: (DeviceAddress) -> Bool = { [found] peer in
            switch target {
            case .address(let address): address.matches(BLEAddress(peer))
            case .name(let name): found[name] == peer
            }
        }
        for peer in book.peers(of: own) where isMeant(peer) { book[own, peer] = nil }
        saveBonds()
        for link in links.values {
            if isMeant(await link.identity) { await link.close() }
        }
    }

    // MARK: The file

    /// Reads what is stored. A file that cannot be understood is kept beside it, and the book starts empty.
    func loadBonds() async {
        guard let file, !hasLoadedBonds else { return }
        do throws(MeshError) {
            let stored = try await loop.blocking { () throws(MeshError) -> BondBook? in
                guard let contents = try file.read() else { return nil }
                if let json = try? JSONValue(parsing: contents), let book = BondBook(json: json) { return book }
                try file.setAside()
                return nil
            }
            hasLoadedBonds = true
            if let stored { book = stored } else { saveBonds() }
        } catch {
            log(.notice, "the stored bonds cannot be read", [("path", file.path), ("error", "\(error)")])
        }
    }

    /// Writes the book. Changes that come while it is being written share the next write.
    func saveBonds() {
        // What could not be read must not be replaced.
        guard let file, hasLoadedBonds else { return }
        hasUnsavedBonds = true
        guard saver == nil else { return }
        saver = Task(executorPreference: loop.taskExecutor) { await self.writeBonds(to: file) }
    }

    private func writeBonds(to file: StateFile) async {
        while hasUnsavedBonds {
            hasUnsavedBonds = false
            let contents = book.json.serialized(pretty: true)
            do throws(MeshError) {
                try await loop.blocking { () throws(MeshError) in try file.write(contents) }
            } catch {
                log(.notice, "the bonds cannot be stored", [("path", file.path), ("error", "\(error)")])
            }
        }
        saver = nil
    }
}
