// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI

extension Surroundings {
    /// One module's search.
    private struct Search: Sendable {
        var module: String
        var results: AsyncThrowingStream<ScanResult, any Error>
    }

    /// Devices as they are heard, for so long: `scan.ready`, then `scan.seen`, then `scan.end`, at once when no module looks
    /// any more. Through this module, or through those that configured devices use and that of radios, if it is there. A
    /// module that cannot look is told of with `scan.fail`.
    func scan(_ module: String?, for time: Duration) async throws(MeshError) -> AsyncStream<JSONValue> {
        let factories = try await scanners(module)
        var searches: [Search] = []
        var failures: [JSONValue] = []
        for factory in factories {
            let name = factory.descriptor.name
            do {
                let results = try await factory.scan(around: configuredDevices(of: factory).devices)
                searches.append(Search(module: name, results: results))
            } catch {
                failures.append(ScanEvent.failure(of: name, MeshError(wrapping: error)))
            }
        }
        // A consumer that is slow sees the newest: devices are seen again and again.
        let (events, continuation) = AsyncStream.makeStream(of: JSONValue.self, bufferingPolicy: .bufferingNewest(512))
        continuation.yield(
            ["type": .string(ScanEvent.ready.rawValue), "modules": .array(searches.map { .string($0.module) })])
        for failure in failures { continuation.yield(failure) }
        let known = KnownDevices(config)
        let work = Task(executorPreference: loop.taskExecutor) { [loop, searches] in
            await withTaskGroup(of: Bool.self) { group in
                for search in searches {
                    group.addTask {
                        do {
                            for try await result in search.results {
                                continuation.yield(known.sighting(result, search.module).json)
                            }
                        } catch {
                            continuation.yield(ScanEvent.failure(of: search.module, MeshError(wrapping: error)))
                        }
                        return false
                    }
                }
                group.addTask {
                    try? await loop.sleep(for: time)
                    return true
                }
                var looking = searches.count
                while looking > 0, let isOver = await group.next(), !isOver { looking -= 1 }
                group.cancelAll()
            }
            continuation.yield(["type": .string(ScanEvent.end.rawValue)])
            continuation.finish()
        }
        continuation.onTermination = { _ in work.cancel() }
        return events
    }

    private func scanners(_ module: String?) async throws(MeshError) -> [any TransportScanning] {
        if let module {
            let factory = try await factory(module)
            guard let scanner = factory.scanner else {
                throw MeshError(
                    .notSupported, "module \"\(module)\" cannot look for devices; bluez, hci and serial can")
            }
            return [scanner]
        }
        var scanners: [any TransportScanning] = []
        for name in configuredModules + [Self.radioModule]
        where !scanners.contains(where: { $0.descriptor.name == name }) {
            if let scanner = (try? await factory(name))?.scanner { scanners.append(scanner) }
        }
        guard !scanners.isEmpty else {
            throw MeshError(
                .notSupported,
                "no module here can look for devices: those of the config cannot, and \"\(Self.radioModule)\" is not "
                    + "installed; see `meshhost modules`, or name one with --module")
        }
        return scanners
    }
}

extension TransportFactory {
    /// This, if it can look for devices.
    fileprivate var scanner: (any TransportScanning)? {
        descriptor.capabilities.contains(.scanning) ? self as? any TransportScanning : nil
    }
}
