// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshDBus
internal import MeshLoop
internal import MeshTransportAPI

/// What bluetoothd tells: objects, values, and what follows from them for links, searches and observers.
extension BlueZService {
    func treeSignal(_ signal: DBusSignal) {
        switch signal.member {
        case "InterfacesAdded":
            guard signal.arguments.count == 2, let path = signal.arguments[0].text else { return }
            recorded?.append(.added(path, signal.arguments[1]))
            apply(objects.interfacesAdded(path, signal.arguments[1]))
        case "InterfacesRemoved":
            guard signal.arguments.count == 2, let path = signal.arguments[0].text,
                let interfaces = signal.arguments[1].texts
            else { return }
            recorded?.append(.removed(path, interfaces))
            apply(objects.interfacesRemoved(path, interfaces))
        case "Disconnected": lossReasons[signal.path] = signal.arguments.first?.text
        default: break
        }
    }

    /// Values of characteristics come another way, unless something else is told with them.
    func propertiesChanged(_ signal: DBusSignal) {
        guard signal.arguments.count >= 2, case .string(let interface) = signal.arguments[0],
            case .dictionary(_, _, let entries) = signal.arguments[1]
        else { return }
        if interface == BlueZNames.characteristic, let value = entries[BlueZNames.value] {
            if let sink = sinks[signal.path], let bytes = value.octets { bytes.withUnsafeBytes { sink($0) } }
            if entries.count == 1 { return }
        }
        let invalidated = signal.arguments.count > 2 ? signal.arguments[2].texts ?? [] : []
        recorded?.append(.changed(signal.path, interface, signal.arguments[1], invalidated))
        apply(objects.propertiesChanged(signal.path, interface, signal.arguments[1], invalidated: invalidated))
    }

    /// Asks for a property, and takes the answer as if it had just been told.
    func ask(_ path: String, _ interface: String, _ name: String) async {
        do throws(DBusError) {
            let answer = try await call(path, BlueZNames.properties, "Get", [.string(interface), .string(name)])
            guard let value = answer.first?.plain else { return }
            apply(objects.propertiesChanged(path, interface, .options([name: value])))
        } catch {
            log(.debug, "a property was not told", [("path", path), ("name", name), ("error", error.description)])
        }
    }

    private func apply(_ changes: [BlueZObjects.Change]) {
        if changes.isEmpty { return }
        for change in changes {
            switch change {
            case .adapter(let path): adapterChanged(path)
            case .deviceAppeared(let path):
                if objects.devices[path]?.rssi != nil { heard(path) }
            case .device(let path, let isSighting):
                if isSighting { heard(path) }
                if links[path] != nil, objects.devices[path]?.isConnected == false { linkLost(path) }
                presumptionMayHold(path)
            case .deviceVanished(let path):
                gattChanges[path] = nil
                knownServices[path] = nil
                linkLost(path)
            case .gatt(let device):
                // What lies below a device may go after it.
                if objects.devices[device] != nil { gattChanges[device, default: 0] += 1 }
                knownMayHaveChanged(device)
            }
        }
        changed()
    }

    /// The tree has been read: a link whose end was not told is over all the same.
    func endLostLinks() {
        for path in links.keys where objects.devices[path]?.isConnected != true { linkLost(path) }
    }

    private func linkLost(_ path: String) {
        let reason = lossReasons.removeValue(forKey: path)
        guard let link = links[path] else { return }
        endLink(path, GATTError(lossOf: link.peerName, reason: reason))
    }

    func endLink(_ path: String, _ error: GATTError) {
        guard let link = links.removeValue(forKey: path) else { return }
        book.linkEnded(path)
        link.assumeIsolated { $0.ended(error) }
    }

    /// A link begins: what was said of the end of the one before does not count for it.
    func forgetLoss(_ path: String) {
        lossReasons[path] = nil
    }

    // MARK: Values

    /// What to do with a characteristic's values: the hot path, nearly all that bluetoothd ever says.
    func setSink(_ characteristic: String, _ sink: (@Sendable (UnsafeRawBufferPointer) -> Void)?) {
        sinks[characteristic] = sink
        let value = DBusBytesProperty(
            sender: BlueZNames.service, path: characteristic, interface: BlueZNames.characteristic, name: "Value")
        bus?.assumeIsolated { $0.setBytesHandler(of: value, sink) }
    }

    // MARK: State

    /// A new number for whatever needs one.
    func nextSerial() -> UInt64 {
        lastSerial += 1
        return lastSerial
    }

    func state(_ choice: AdapterChoice) -> BluetoothState {
        switch outage {
        case nil: break
        case .accessDenied?: return .unauthorized
        default: return .serviceUnavailable
        }
        guard let adapter = objects.adapter(choice) else { return .absent }
        if adapter.isPowered { return .poweredOn }
        return adapter.isBlocked || blocked.contains(adapter.path) ? .blocked : .poweredOff
    }

    /// For people.
    func adapterName(_ choice: AdapterChoice) -> String { objects.adapter(choice)?.name ?? choice.text }

    /// Tells `handler` the state of an adapter now, and each change until ``endObservation(_:)``.
    /// Meanwhile the agent answers for `target`.
    func observe(
        _ target: BLETarget, _ passkey: BLEPasskey?, _ choice: AdapterChoice, powersOn: Bool, isDefaultAgent: Bool,
        _ handler: @escaping @Sendable (BluetoothState) -> Void
    ) async -> UInt64 {
        await retain()
        let serial = nextSerial()
        observers[serial] = Observer(
            choice: choice, powersOn: powersOn, isDefaultAgent: isDefaultAgent, handler: handler)
        book.configure(serial, target, passkey)
        defaultAgentChanged()
        changed()
        return serial
    }

    func endObservation(_ serial: UInt64) {
        guard observers.removeValue(forKey: serial) != nil else { return }
        book.forget(serial)
        defaultAgentChanged()
        release()
    }

    /// Tells whoever waits or observes. After every change but those of values.
    func changed() {
        waiters.evaluate(self)
        for (serial, observer) in observers {
            let state = state(observer.choice)
            if state == observer.told { continue }
            // Off for a moment, by our own doing.
            if state == .poweredOff, isPowerCycling(observer.choice) { continue }
            observers[serial]?.told = state
            // One that was on was switched off by somebody, and stays off.
            if state == .poweredOff, observer.powersOn, observer.told != .poweredOn { powerOnLater(observer.choice) }
            observer.handler(state)
        }
    }
}
