// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshLoop
internal import MeshStream
internal import MeshTransportAPI

/// One attempt: find the port, open it, and give the board the time it needs.
extension SerialTransport {
    /// What was found of the port, off the loop.
    private struct Found: Sendable {
        var path: String?
        var port: SerialPortInfo?
        var others: [SerialPortInfo] = []
    }

    /// The port, ready for the first frame. Whatever else was begun has ended when this returns or throws.
    func openPort() async throws(MeshError) -> OpenedStream {
        let catalogue = watcher.catalogue
        let choice = settings.choice
        let found = await loop.blocking {
            guard let path = catalogue.path(of: choice) else { return Found(others: catalogue.ports()) }
            return Found(path: path, port: catalogue.port(at: path))
        }
        guard let path = found.path else { throw MeshError(missing: choice, among: found.others) }
        board = SerialBoard.behind(found.port?.usb)
        lines.boardFound(settings.control.map { [$0] } ?? board.candidates)
        guard !Task.isCancelled else { throw link.cancelled }
        let line = SerialLine(
            path: path, baud: settings.baud, hardwareFlowControl: settings.hardwareFlowControl,
            control: lines.control)
        let port: LoopStream
        do throws(LoopError) {
            port = try await LoopStream.open(line, on: loop)
        } catch {
            throw MeshError(opening: path, error, isNew: Self.isNew(path))
        }
        let delay = max(settings.bootDelay, lines.startTime)
        if delay > .zero {
            do throws(CancellationError) {
                try await loop.sleep(for: delay)
            } catch {
                port.close()
                throw link.cancelled
            }
        }
        return OpenedStream(port, peer: path)
    }

    /// udev sets the rights of a port a moment after it has appeared, which changes the file's status.
    private static func isNew(_ path: String) -> Bool {
        var facts = stat()
        return stat(path, &facts) == 0 && time(nil) - facts.st_ctim.tv_sec <= 2
    }
}
