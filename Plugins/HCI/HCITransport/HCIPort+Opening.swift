// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI

/// Opening what a port names.
extension HCIPort {
    /// How often, and how long apart, an adapter is tried that is busy: the program before may not have let go yet, and
    /// bluetoothd may be just looking at it.
    private static let adapterAttempts = 6
    private static let adapterPause = Duration.milliseconds(200)

    /// Opens a line to the controller. An adapter that somebody uses is taken only if that is asked for.
    func open(
        _ loop: EventLoop, takingFromOthers: Bool
    ) async throws(MeshError) -> any HCILine {
        do throws(LoopError) {
            switch self {
            case .unix(let path):
                let stream = LoopStream(unix: loop)
                try await stream.connect(to: SocketAddress(unixPath: path))
                return ByteLine(stream)
            case .serial(let line): return ByteLine(try await LoopStream.open(line, on: loop))
            case .tcp, .adapter: break
            }
        } catch {
            throw HCIOutage.unopened(error).error(self)
        }
        if case .tcp(let host, let port) = self { return try await openTCP(loop, host, port) }
        return try await openAdapter(loop, takingFromOthers: takingFromOthers)
    }

    /// At the first address that answers: a name may have several, and what serves the controller listen at one of them.
    private func openTCP(_ loop: EventLoop, _ host: String, _ port: UInt16) async throws(MeshError) -> any HCILine {
        let addresses: [SocketAddress]
        do throws(LoopError) {
            addresses = try await loop.resolve(host: host, port: port)
        } catch {
            throw HCIOutage.unopened(error).error(self)
        }
        do throws(LoopStream.ConnectFailures) {
            let stream = try await LoopStream.connect(toFirstOf: addresses, on: loop)
            stream.setNoDelay()
            return ByteLine(stream)
        } catch {
            throw HCIOutage(error).error(self)
        }
    }

    private func openAdapter(
        _ loop: EventLoop, takingFromOthers: Bool
    ) async throws(MeshError) -> any HCILine {
        guard case .adapter(let index) = self else { preconditionFailure("\(self) is no adapter") }
        var failure = AdapterFailure(.openSocket, 0)
        for attempt in 1...Self.adapterAttempts {
            let wasUp = failure.wasUp
            do throws(AdapterFailure) {
                let channel = try await loop.blocking { () throws(AdapterFailure) in
                    try AdapterChannel.take(index, fromOthers: takingFromOthers, wasUp: wasUp)
                }
                return PacketLine(loop, descriptor: channel.descriptor) { channel.giveBack() }
            } catch {
                failure = error
            }
            guard failure.isPassing, attempt < Self.adapterAttempts else { break }
            do throws(CancellationError) { try await loop.sleep(for: Self.adapterPause) } catch { break }
        }
        throw failure.error(self)
    }
}
