// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshBLE
internal import MeshDBus
internal import MeshLoop
internal import MeshTransportAPI

/// Values that the device sends: by signals of the bus (`StartNotify`), or over a socket (`AcquireNotify`).
///
/// Never `ReadValue`: it would be told as a value, too.
extension BlueZLink {
    /// For what is said to the device on the way out; it may be gone.
    private static let stopTime = Duration.seconds(1)

    func startNotifications(
        of characteristic: GATTCharacteristic, _ handler: @escaping @Sendable (Data) -> Void
    ) async throws(GATTError) {
        try requireUp(.subscribe)
        if settings.acquiresNotifications {
            try await acquireNotifications(of: characteristic.id, handler)
        } else {
            try await subscribe(to: characteristic.id, handler)
        }
    }

    /// The handler is in place before the device is asked: it may send before bluetoothd has told us that it agreed (R15).
    private func subscribe(
        to path: String, _ handler: @escaping @Sendable (Data) -> Void
    ) async throws(GATTError) {
        beginSubscription(to: path, handler)
        do throws(GATTError) {
            do throws(GATTError) {
                _ = try await repeatedly(path, "StartNotify", [])
            } catch {
                guard presumed != nil, isUp, error.reason != .cancelled else { throw error }
                try await presumeNothing()
                _ = try await repeatedly(path, "StartNotify", [])
            }
            try requireUp(.subscribe)
        } catch {
            // A link that ended has dropped it, and its place may be taken.
            if isUp, subscribed.remove(path) != nil { await service.setSink(path, nil) }
            if error.reason == .cancelled {
                await loop.uncancelled { await self.stopNotifications([path]) }
            }
            throw error
        }
    }

    /// In one turn: a link that ends in between would leave its sink behind.
    private func beginSubscription(to path: String, _ handler: @escaping @Sendable (Data) -> Void) {
        subscribed.insert(path)
        service.assumeIsolated { $0.setSink(path) { handler(Data($0)) } }
    }

    private func acquireNotifications(
        of path: String, _ handler: @escaping @Sendable (Data) -> Void
    ) async throws(GATTError) {
        let reply = try await repeatedly(path, "AcquireNotify", [.options([:])], takesDescriptors: true)
        guard case .descriptor(let descriptor)? = reply.first?.plain else {
            reply.closeDescriptors()
            throw failure(.unsupported, .subscribe)
        }
        Array(reply.dropFirst()).closeDescriptors()
        let socket = NotificationSocket(descriptor: descriptor)
        do throws(GATTError) {
            try requireUp(.subscribe)
        } catch {
            socket.close()
            throw error
        }
        do throws(LoopError) {
            try socket.open(loop, handler) { self.socketEnded(path) }
        } catch {
            socket.close()
            throw failure(.other, .subscribe)
        }
        sockets[path] = socket
    }

    /// bluetoothd ends the socket with the link; where it does so alone, no value would come any more.
    private func socketEnded(_ path: String) {
        guard isUp, sockets.removeValue(forKey: path) != nil else { return }
        settings.log(.info, "bluetoothd has ended the notifications", [("peer", peerName)])
        loop.performLater { [service, path = self.path] in
            service.assumeIsolated { $0.socketEnded(path) }
        }
    }

    /// Calls a method that bluetoothd refuses while one like it is under way, until the caller gives up.
    private func repeatedly(
        _ path: String, _ member: String, _ arguments: [DBusValue], takesDescriptors: Bool = false
    ) async throws(GATTError) -> [DBusValue] {
        while true {
            do throws(DBusError) {
                return try await call(
                    path, BlueZNames.characteristic, member, arguments, takesDescriptors: takesDescriptors,
                    timeout: Self.attributeTime)
            } catch {
                switch BlueZFailure(error, during: .subscribe) {
                case .alreadyDone: return []
                case .inProgress: break
                default: throw failure(error, .subscribe)
                }
            }
            do throws(CancellationError) {
                try await loop.sleep(for: Self.inProgressDelay)
            } catch {
                throw .cancelled(.subscribe, peer: peerName)
            }
            try requireUp(.subscribe)
        }
    }

    /// bluetoothd would switch them on again at the next connection.
    func stopNotifications(_ characteristics: Set<String>) async {
        for path in characteristics {
            do throws(DBusError) {
                _ = try await call(path, BlueZNames.characteristic, "StopNotify", timeout: Self.stopTime)
            } catch {
                settings.log(.debug, "StopNotify failed", [("peer", peerName), ("error", error.description)])
            }
        }
    }
}

extension BlueZService {
    /// The notifications of a link ended, and that of the link was not told: it is ended, and told as lost.
    fileprivate func socketEnded(_ path: String) {
        guard links[path] != nil else { return }
        endLater(path, after: .seconds(1))
    }

    /// Ends a link that is of no use any more, unless it is lost within some time: then that is told.
    func endLater(_ path: String, after grace: Duration) {
        guard endings[path] == nil else { return }
        endings[path] = Task(executorPreference: loop.taskExecutor) { await self.disconnectUnlessLost(path, grace) }
    }

    private func disconnectUnlessLost(_ path: String, _ grace: Duration) async {
        var isLost = false
        if grace > .zero { isLost = await wait(upTo: grace) { $0.links[path] == nil } }
        if !isLost { await disconnect(path) }
        endings[path] = nil
    }
}
