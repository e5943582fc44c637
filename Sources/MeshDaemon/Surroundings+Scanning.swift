// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI

extension Surroundings {
    /// Devices as they are heard, for so long: `scan.ready`, then `scan.seen`, then `scan.end`. Through this module, or
    /// through those that configured devices use and that of radios, if it is there.
    func scan(_ module: String?, for time: Duration) async throws(MeshError) -> AsyncStream<JSONValue> {
        let factories = try scanners(module)
        var streams: [(module: String, results: AsyncStream<ScanResult>)] = []
        var events: [JSONValue] = []
        var failure: MeshError?
        for factory in factories {
            let name = factory.descriptor.name
            do {
                streams.append((name, try await factory.scan(around: configuredDevices(of: factory).devices)))
            } catch {
                let error = MeshError(wrapping: error)
                failure = failure ?? error
                events.append([
                    "type": .string(ScanEvent.fail.rawValue), "module": .string(name), "code": .string(error.code.slug),
                    "message": .string(error.message),
                ])
            }
        }
        if streams.isEmpty, let failure { throw failure }
        events.insert(
            ["type": .string(ScanEvent.ready.rawValue), "modules": .array(streams.map { .string($0.module) })], at: 0)
        // A consumer that is slow sees the newest: devices are seen again and again.
        let (sightings, continuation) = AsyncStream.makeStream(
            of: JSONValue.self, bufferingPolicy: .bufferingNewest(512))
        for event in events { continuation.yield(event) }
        let known = KnownDevices(config)
        let work = Task(executorPreference: loop.taskExecutor) { [loop, streams] in
            await withTaskGroup(of: Bool.self) { group in
                for (module, results) in streams {
                    group.addTask {
                        for await result in results { continuation.yield(known.sighting(result, module).json) }
                        return false
                    }
                }
                group.addTask {
                    try? await loop.sleep(for: time)
                    return true
                }
                while let isOver = await group.next(), !isOver {}
                group.cancelAll()
            }
            continuation.yield(["type": .string(ScanEvent.end.rawValue)])
            continuation.finish()
        }
        continuation.onTermination = { _ in work.cancel() }
        return sightings
    }

    private func scanners(_ module: String?) throws(MeshError) -> [any TransportScanning] {
        if let module {
            let factory = try factory(module)
            guard let scanner = factory.scanner else {
                throw MeshError(.notSupported, "module \"\(module)\" cannot look for devices")
            }
            return [scanner]
        }
        var scanners: [any TransportScanning] = []
        for name in configuredModules + [Self.radioModule]
        where !scanners.contains(where: { $0.descriptor.name == name }) {
            if let scanner = (try? factory(name))?.scanner { scanners.append(scanner) }
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
