// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
public import MeshTransportAPI

extension SerialTransportFactory: TransportScanning {
    /// The ports of this machine, and those that are plugged in while somebody looks. Opens none.
    public func scan() async throws -> AsyncThrowingStream<ScanResult, any Error> {
        let watcher = watcher
        let loop = loop
        return await LoopActor(loop).run { _ in
            let (stream, continuation) = AsyncThrowingStream.makeStream(
                of: ScanResult.self, bufferingPolicy: .bufferingNewest(256))
            let scan = SerialScan(watcher, continuation)
            // Holds the scan until the consumer is done with it; it is dropped on the loop.
            continuation.onTermination = { _ in loop.perform { scan.end() } }
            return stream
        }
    }
}

/// One look at the ports as they come. Sendable because of one invariant: it is touched on the loop's thread only.
private final class SerialScan: @unchecked Sendable {
    private var wait: SerialPortWatcher.Wait?
    private var told: Set<SerialPortInfo> = []

    init(
        _ watcher: SerialPortWatcher, _ continuation: AsyncThrowingStream<ScanResult, any Error>.Continuation
    ) {
        look(watcher, continuation)
        wait = watcher.atEachChange { [weak self, weak watcher] in
            if let watcher { self?.look(watcher, continuation) }
        }
    }

    func end() {
        wait = nil
    }

    private func look(
        _ watcher: SerialPortWatcher, _ continuation: AsyncThrowingStream<ScanResult, any Error>.Continuation
    ) {
        let ports = Set(watcher.catalogue.ports())
        for port in ports.subtracting(told).sorted(by: { $0.device < $1.device }) {
            continuation.yield(ScanResult(address: port.path, name: port.shownName))
        }
        told = ports
    }
}

extension SerialPortInfo {
    /// What it is, for people.
    var shownName: String {
        let name = product.isEmpty ? driver : product
        guard let usb else { return name }
        return "\(name) (\(USBIdentity(vendor: usb.vendor, product: usb.product)))"
    }
}
