// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack

/// What the host orders.
extension VirtualController {
    private static let features: LEFeatures = [.encryption, .dataLengthExtension, .twoMegabit]

    func take(_ command: HCICommand) {
        let opcode = command.opcode
        commands.append(opcode)
        if ignored.contains(opcode) { return }
        if let status = refusals[opcode] {
            send(.commandStatus(opcode, status))
            return
        }
        switch opcode {
        case .createConnection, .disconnect, .enableEncryption, .updateConnection, .readRemoteFeatures, .setPHY,
            .readRemoteVersion:
            begin(command)
        case .createConnectionCancel: cancelCreation()
        case .setScanEnable:
            guard send(.commandComplete(opcode)) else { return }
            isScanning = command.parameters[0] == 1
            if isScanning { tellOfPeers() }
        default:
            if opcode == .reset { forgetEverything() }
            if opcode == .setRandomAddress {
                randomAddress = DeviceAddress(command.parameters.reversed().reduce(0) { $0 << 8 | UInt64($1) }, .random)
            }
            send(.commandComplete(opcode, returned(opcode, command.parameters)))
        }
    }

    /// Commands that an event ends.
    private func begin(_ command: HCICommand) {
        let opcode = command.opcode
        if opcode == .createConnection { return createConnection(command) }
        let handle = ConnectionHandle(UInt16(command.parameters[0]) | UInt16(command.parameters[1]) << 8)
        guard let index = link(handle) else {
            send(.commandStatus(opcode, .unknownConnection))
            return
        }
        guard send(.commandStatus(opcode)), link(handle) != nil else { return }
        switch opcode {
        case .disconnect: if !holdsEnds { endLink(handle, .localHostTerminated) }
        case .enableEncryption:
            links[index].key = Array(command.parameters.suffix(16))
            let random = command.parameters[2..<10].reversed().reduce(0) { $0 << 8 | UInt64($1) }
            let diversifier = UInt16(command.parameters[10]) | UInt16(command.parameters[11]) << 8
            let peer = links[index].peer
            carryOut(
                peer.eventReceived(.longTermKeyRequested(handle, random: random, diversifier: diversifier)), of: handle)
        case .updateConnection:
            supervisionTimeouts.append(UInt16(command.parameters[8]) | UInt16(command.parameters[9]) << 8)
            // The longest interval that was asked for, then latency and timeout as they are.
            send(.connectionUpdated(handle, Array(command.parameters[4..<10])))
        case .readRemoteFeatures: send(.remoteFeatures(handle, Self.features))
        case .setPHY: send(.phyUpdated(handle))
        case .readRemoteVersion: send(.remoteVersion(handle))
        default: break
        }
    }

    private func createConnection(_ command: HCICommand) {
        let kind: DeviceAddress.Kind = command.parameters[5] == 0 ? .public : .random
        let value = command.parameters[6..<12].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        let address = DeviceAddress(value, kind)
        if initiating != nil {
            send(.commandStatus(.createConnection, .commandDisallowed))
            return
        }
        if peer(address)?.isLinked == true {
            send(.commandStatus(.createConnection, .connectionExists))
            return
        }
        supervisionTimeouts.append(UInt16(command.parameters[19]) | UInt16(command.parameters[20]) << 8)
        hostAddress = command.parameters[12] == 0 ? Self.address : randomAddress
        guard send(.commandStatus(.createConnection)) else { return }
        initiating = address
        tellOfPeers()
    }

    private func cancelCreation() {
        if cancelsTooLate, let initiating, let peer = peer(initiating) {
            peer.isAdvertising = true
            makeLink(peer)
        }
        guard initiating != nil else {
            send(.commandStatus(.createConnectionCancel, .commandDisallowed))
            return
        }
        guard send(.commandComplete(.createConnectionCancel)) else { return }
        initiating = nil
        if !holdsCancellations { send(.connectionComplete(.unknownConnection)) }
    }

    private func returned(_ opcode: HCIOpcode, _ parameters: [UInt8]) -> [UInt8] {
        switch opcode {
        case .readLocalVersion: [9, 0, 0, 9, 0xFF, 0xFF, 0, 0]
        // All of them.
        case .readSupportedCommands: [UInt8](repeating: 0xFF, count: 64)
        case .readLEFeatures: (0..<8).map { UInt8(truncatingIfNeeded: Self.features.rawValue >> (8 * $0)) }
        // LE only.
        case .readSupportedFeatures: [0, 0, 0, 0, 0x20, 0, 0, 0]
        case .readAddress: Self.address.wireBytes
        case .readLEBufferSizeV2: settings.bufferLength.wire + [settings.bufferCount, 0, 0, 0]
        case .readLEBufferSize: settings.bufferLength.wire + [settings.bufferCount]
        case .readAcceptListSize: [8]
        case .readMaximumDataLength:
            UInt16(251).wire + UInt16(2120).wire + UInt16(251).wire + UInt16(2120).wire
        case .setDataLength: Array(parameters.prefix(2))
        default: []
        }
    }
}
