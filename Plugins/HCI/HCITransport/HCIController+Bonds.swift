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
    /// Returns whether there were keys.
    @discardableResult func removeBond(_ target: BLETarget) async throws(GATTError) -> Bool {
        // Bonds belong to the controller's address, which nobody knows before it is there.
        let own = try await usable(.pair, target.description).ownAddress
        let peers = bondedPeers(target)
        // As long as the keys are there that tell who is behind a private address.
        let ending = links.values.filter { isMeant(identity(of: $0.connection.peer), target) }
        for peer in peers { book[own, peer] = nil }
        if !peers.isEmpty {
            // Whoever has the name of one that is paired by then is told of anew.
            namesakes = [:]
            saveBonds()
        }
        for link in ending { await link.end() }
        return !peers.isEmpty
    }

    // MARK: The file

    private enum Stored: Sendable {
        case book(BondBook)
        case nothing
        /// Something that cannot be understood, which has another name now.
        case garbage
    }

    /// Reads what is stored. A file that cannot be understood is kept beside it, and the book starts empty. What was learnt
    /// before the file could be read goes into the book that is in it.
    func loadBonds() async {
        guard let file, !hasLoadedBonds else { return }
        do throws(MeshError) {
            let stored = try await loop.blocking { () throws(MeshError) -> Stored in
                guard let contents = try file.read() else { return .nothing }
                if let json = try? JSONValue(parsing: contents), let book = BondBook(json: json) { return .book(book) }
                try file.setAside()
                return .garbage
            }
            hasLoadedBonds = true
            bondTrouble = nil
            switch stored {
            case .book(let stored):
                book = book.added(to: stored)
                if book != stored { saveBonds() }
            case .nothing: saveBonds()
            case .garbage:
                log(
                    .error, "the stored bonds cannot be understood; paired devices have to be paired again",
                    [("path", file.path), ("kept_as", file.corruptPath)])
                saveBonds()
            }
        } catch {
            // Tried again whenever the controller is opened, and told once.
            if bondTrouble == error.message { return }
            bondTrouble = error.message
            log(.notice, "the stored bonds cannot be read", [("path", file.path), ("error", "\(error)")])
        }
    }

    /// Writes the book. Changes that come while it is being written share the next write; one that failed is tried again, more
    /// and more rarely, and with the next change.
    func saveBonds() {
        // What could not be read must not be replaced.
        guard let file, hasLoadedBonds else { return }
        hasUnsavedBonds = true
        guard saver == nil else { return }
        saveTimer?.cancel()
        saver = Task(executorPreference: loop.taskExecutor) { await self.writeBonds(to: file) }
    }

    /// Returns when all that is known is stored, or the time is over: a disk that hangs must not hold a device up for ever.
    func bondsStored(upTo limit: Duration) async {
        guard saver != nil else { return }
        let timer = LoopTimer(loop)
        timer.schedule(after: limit) { self.tellStorers() }
        await withCheckedContinuation { continuation in
            if self.saver == nil { continuation.resume() } else { self.storers.append(continuation) }
        }
        timer.cancel()
    }

    private func tellStorers() {
        let waiting = storers
        storers = []
        for waiter in waiting { waiter.resume() }
    }

    private func writeBonds(to file: StateFile) async {
        var failure: MeshError?
        while hasUnsavedBonds, failure == nil {
            hasUnsavedBonds = false
            let contents = book.json.serialized(pretty: true)
            do throws(MeshError) {
                try await loop.blocking { () throws(MeshError) in try file.write(contents) }
            } catch {
                failure = error
            }
        }
        if let failure, bondTrouble != failure.message {
            log(.notice, "the bonds cannot be stored", [("path", file.path), ("error", "\(failure)")])
        }
        bondTrouble = failure?.message
        saver = nil
        if failure == nil { saveDelay = nil } else { saveLater() }
        tellStorers()
    }

    private func saveLater() {
        hasUnsavedBonds = true
        let delay = min(saveDelay.map { $0 * 2 } ?? deadlines.storing.lowerBound, deadlines.storing.upperBound)
        saveDelay = delay
        let timer = saveTimer ?? LoopTimer(loop)
        saveTimer = timer
        timer.schedule(after: delay) { self.saveBonds() }
    }

    /// What is not stored yet has one more chance, now.
    func saveLast() async {
        if hasUnsavedBonds { saveBonds() }
        await saver?.value
        saveTimer?.cancel()
    }
}
