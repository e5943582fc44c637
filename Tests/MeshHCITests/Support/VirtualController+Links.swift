// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack

/// Links and their data.
extension VirtualController {
    /// As after a reset.
    func forgetEverything() {
        for link in links { link.peer.linkEnded() }
        links = []
        isScanning = false
        initiating = nil
        unreported = 0
    }

    func peer(_ address: DeviceAddress) -> VirtualPeripheral? { peers.first { $0.settings.address == address } }

    func link(_ handle: ConnectionHandle) -> Int? { links.firstIndex { $0.handle == handle } }

    /// All radios are in range again, and the controller works: no fault is to come.
    func heal() {
        disarm()
        ignored = []
        refusals = [:]
        for peer in peers { peer.isAdvertising = true }
        tellOfPeers()
        flush()
    }

    /// What follows from who is there.
    func tellOfPeers() {
        let here = peers.filter { $0.isAdvertising && !$0.isLinked }
        if isScanning { for peer in here { send(.report(peer.settings.address, name: peer.settings.name)) } }
        guard let initiating, let peer = here.first(where: { $0.settings.address == initiating }) else { return }
        makeLink(peer)
    }

    func makeLink(_ peer: VirtualPeripheral) {
        initiating = nil
        let handle = ConnectionHandle(nextHandle)
        // Handles come again, as those of real controllers do.
        nextHandle = nextHandle == 0x4F ? 0x40 : nextHandle + 1
        peer.linkMade(handle, by: hostAddress)
        links.append(Link(handle: handle, peer: peer))
        let event = ControllerPacket.connectionComplete(
            .success, handle, peer: peer.settings.address, isEnhanced: settings.isEnhanced)
        if !send(event), let index = link(handle) { links.remove(at: index).peer.linkEnded() }
    }

    /// Ends a link; its buffers are free with the event.
    func endLink(_ handle: ConnectionHandle, _ reason: HCIStatus) {
        guard let index = link(handle) else { return }
        links.remove(at: index).peer.linkEnded()
        send(.disconnectionComplete(handle, reason))
    }

    func loseLinks(_ reason: HCIStatus) {
        for link in links { endLink(link.handle, reason) }
    }

    func loseLink(to address: DeviceAddress, _ reason: HCIStatus = .connectionTimeout) {
        guard let link = links.first(where: { $0.peer.settings.address == address }) else { return }
        endLink(link.handle, reason)
        flush()
    }

    // MARK: Data of the host

    func take(_ packet: ACLPacket) {
        guard let index = link(packet.handle) else { return }
        if let left = packetsUntilLoss {
            packetsUntilLoss = left == 0 ? nil : left - 1
            if left == 0 { return endLink(packet.handle, .connectionTimeout) }
        }
        if links.reduce(0, { $0 + $1.outstanding }) >= Int(settings.bufferCount) { overruns += 1 }
        arrivals.append(packet.handle)
        links[index].outstanding += 1
        unreported += 1
        let peer = links[index].peer
        carryOut(peer.pieceReceived(packet.boundary, packet.payload), of: packet.handle)
        switch settings.credits {
        case .atOnce: complete(unreported)
        case .together(let count): if unreported >= count { complete(unreported) }
        case .whenTold: break
        }
    }

    /// Gives so many buffers back, the links by turns, in one event.
    func complete(_ count: Int) {
        var left = count
        var given: [ConnectionHandle: Int] = [:]
        while left > 0, links.contains(where: { $0.outstanding > 0 }) {
            for index in links.indices where links[index].outstanding > 0 && left > 0 {
                links[index].outstanding -= 1
                given[links[index].handle, default: 0] += 1
                left -= 1
            }
        }
        unreported = links.reduce(0) { $0 + $1.outstanding }
        if given.isEmpty { return }
        send(.completedPackets(given.sorted { $0.key.rawValue < $1.key.rawValue }.map { ($0.key, $0.value) }))
    }

    /// The same, from a test.
    func completeAndFlush(_ count: Int) {
        complete(count)
        flush()
    }

    // MARK: Data of the radio

    func carryOut(_ orders: [VirtualPeripheral.Order], of handle: ConnectionHandle) {
        for order in orders {
            guard link(handle) != nil else { return }
            switch order {
            case .frame(let frame):
                if let left = framesUntilSilence {
                    isSilent = left == 0
                    if isSilent { continue }
                    framesUntilSilence = left - 1
                }
                send(frame, on: handle)
            case .command(let command): take(command, ofPeerOn: handle)
            }
        }
    }

    /// In pieces.
    private func send(_ frame: L2CAPFrame, on handle: ConnectionHandle) {
        let bytes = frame.bytes
        for start in stride(from: 0, to: bytes.count, by: settings.pieceLength) {
            guard link(handle) != nil else { return }
            let piece = Array(bytes[start..<min(bytes.count, start + settings.pieceLength)])
            send(
                ControllerPacket(
                    ACLPacket(
                        handle: handle, boundary: start == 0 ? .firstFromController : .continuation, payload: piece)))
        }
    }

    /// A radio's frames, one notification each.
    func notify(_ address: DeviceAddress, _ values: [[UInt8]]) {
        guard let link = links.first(where: { $0.peer.settings.address == address }) else { return }
        for value in values {
            if let frame = link.peer.notification(value) { send(frame, on: link.handle) }
        }
        flush()
    }

    /// A radio sends a frame that its machines would not.
    func sendFrame(_ frame: L2CAPFrame, of address: DeviceAddress) {
        guard let link = links.first(where: { $0.peer.settings.address == address }) else { return }
        carryOut([.frame(frame)], of: link.handle)
        flush()
    }

    /// A radio asks for security.
    func askForSecurity(_ address: DeviceAddress) {
        guard let link = links.first(where: { $0.peer.settings.address == address }) else { return }
        carryOut(link.peer.securityRequest(), of: link.handle)
        flush()
    }

    /// A radio asks for parameters.
    func askForParameters(_ address: DeviceAddress, _ parameters: ConnectionParameters) {
        guard let link = links.first(where: { $0.peer.settings.address == address }) else { return }
        carryOut(link.peer.parameterRequest(parameters), of: link.handle)
        flush()
    }

    /// What the radio's host tells its controller.
    private func take(_ command: HCICommand, ofPeerOn handle: ConnectionHandle) {
        guard let index = link(handle) else { return }
        switch command.opcode {
        case .longTermKeyReply:
            let isEqual = Array(command.parameters.suffix(16)) == links[index].key
            encryptionChanged(handle, isEqual ? .success : .integrityFailure)
        case .longTermKeyNegativeReply: encryptionChanged(handle, .keyMissing)
        case .disconnect: endLink(handle, HCIStatus(rawValue: command.parameters[2]))
        default: break
        }
    }

    private func encryptionChanged(_ handle: ConnectionHandle, _ status: HCIStatus) {
        let isEncrypted = status == .success
        guard send(.encryptionChange(handle, status, isEncrypted: isEncrypted)), let index = link(handle) else {
            return
        }
        let peer = links[index].peer
        if status == .keyMissing, peer.asksWhenKeysAreMissing { carryOut(peer.securityRequest(), of: handle) }
        if status != .keyMissing {
            carryOut(peer.eventReceived(.encryptionChange(status, handle, isEncrypted: isEncrypted)), of: handle)
        }
    }
}
