// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshCrypto
import MeshWire

/// Two links' machines and the controllers between them, on a clock that stands still. The peripheral serves a UART
/// whose values need a passkey, as MeshCore's radios do.
struct LinkPair: ~Copyable {
    typealias Link = LinkStateMachine<String>

    static let uart = BluetoothUUID(high: 0x6E40_0001_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)
    static let receive = BluetoothUUID(high: 0x6E40_0002_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)
    static let send = BluetoothUUID(high: 0x6E40_0003_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)
    static let handle = ConnectionHandle(0x40)
    static let database = AttributeDatabase([
        .init(
            uuid: uart,
            characteristics: [
                .init(uuid: receive, properties: 0x0C, writeProtection: .authenticated),
                .init(uuid: send, properties: 0x10, writeProtection: .authenticated),
            ])
    ])

    var central: Link
    var peripheral: Link
    /// After how many steps the link vanishes.
    var life = Int.max
    private(set) var steps = 0
    private(set) var results: [String: Result<GATTResult, GATTFailure>] = [:]
    private(set) var doubleResults = 0
    /// What each side did that nobody waits for, as words.
    private(set) var centralLog: [String] = []
    private(set) var peripheralLog: [String] = []
    private(set) var bonds: [Bond] = []
    private(set) var delivered: [[UInt8]] = []
    private(set) var written: [[UInt8]] = []
    private(set) var ends: [LinkProcedureStateMachine.End] = []
    private(set) var lateActions = 0
    private var key: [UInt8] = []
    private var queue: [(action: Link.Action, isCentral: Bool)] = []
    private var endedSides: Set<Bool> = []
    var passkeys: (central: UInt32, peripheral: UInt32) = (123_456, 123_456)

    init(centralBond: Bond? = nil, peripheralBond: Bond? = nil, subscriptions: [UInt16: UInt16] = [:]) {
        func complete(_ role: LinkRole) -> ConnectionComplete {
            ConnectionComplete(
                status: .success, handle: Self.handle, role: role,
                peer: role == .central ? PairingPair.peripheralAddress : PairingPair.centralAddress,
                parameters: .init(interval: 12, latency: 0, supervisionTimeout: 500))
        }
        central = Link(
            complete(.central),
            configuration: .init(
                security: .init(role: .central, bond: centralBond, requiresAuthentication: true)))
        var configuration = Link.Configuration(
            security: .init(role: .peripheral, bond: peripheralBond, requiresAuthentication: true))
        configuration.database = Self.database
        configuration.subscriptions = subscriptions
        peripheral = Link(complete(.peripheral), configuration: configuration)
    }

    mutating func ask(_ procedure: GATTProcedure, _ name: String) throws {
        try perform(central.procedureRequested(procedure, waiter: name, now: .zero), isCentral: true)
    }

    /// Does what a side orders, and whatever follows from it.
    mutating func perform(_ actions: [Link.Action], isCentral: Bool) throws {
        queue += actions.map { ($0, isCentral) }
        while !queue.isEmpty {
            let (action, isCentral) = queue.removeFirst()
            if endedSides.contains(isCentral) { lateActions += 1 }
            steps += 1
            if steps == life { vanish() }
            try follow(action, isCentral)
        }
    }

    mutating func vanish() {
        let event = HCIEvent.disconnectionComplete(.success, Self.handle, reason: .connectionTimeout)
        // What the link had under way is gone with it.
        queue = queue.filter { if case .sendFrame = $0.action { false } else { true } }
        queue += central.eventReceived(event, now: .zero).map { ($0, true) }
        queue += peripheral.eventReceived(event, now: .zero).map { ($0, false) }
    }

    private mutating func give(_ event: HCIEvent, toCentral: Bool) {
        if toCentral {
            queue += central.eventReceived(event, now: .zero).map { ($0, true) }
        } else {
            queue += peripheral.eventReceived(event, now: .zero).map { ($0, false) }
        }
    }

    private mutating func answer(_ opcode: HCIOpcode, _ outcome: HCICommandOutcome, toCentral: Bool) {
        if toCentral {
            queue += central.commandFinished(opcode, outcome, now: .zero).map { ($0, true) }
        } else {
            queue += peripheral.commandFinished(opcode, outcome, now: .zero).map { ($0, false) }
        }
    }

    private mutating func follow(_ action: Link.Action, _ isCentral: Bool) throws {
        switch action {
        case .sendFrame(let frame): carry(frame, fromCentral: isCentral)
        case .sendCommand(let command): control(command, isCentral)
        case .finish(let name, let result):
            if results.updateValue(result, forKey: name) != nil { doubleResults += 1 }
        case .deliver(let delivery): delivered.append(delivery.value)
        case .serve(.written(_, let value)): written.append(value)
        case .serve(let event): log("\(event)", isCentral)
        case .finishProcedure(let outcome): log("\(outcome.procedure): \(outcome.status)", isCentral)
        case .finishParameterRequest(let isAccepted): log("parameters: \(isAccepted)", isCentral)
        case .preparePairing:
            let material = try PairingPair.material(isCentral ? 1 : 2)
            if isCentral {
                let machine = PairingStateMachine(
                    PairingPair.settings(.central, .keyboardOnly), material: material, passkey: passkeys.central)
                queue += central.pairingPrepared(machine, now: .zero).map { ($0, true) }
            } else {
                let machine = PairingStateMachine(
                    PairingPair.settings(.peripheral, .displayOnly), material: material, passkey: passkeys.peripheral)
                queue += peripheral.pairingPrepared(machine, now: .zero).map { ($0, false) }
            }
        case .askForPasskey: log("asked", isCentral)
        case .secured(let protection): log("\(protection)", isCentral)
        case .storeBond(let bond): bonds.append(bond)
        case .forgetBond: log("forget", isCentral)
        case .failSecurity(let failure): log("\(failure)", isCentral)
        case .ended(let end):
            ends.append(end)
            endedSides.insert(isCentral)
        }
    }

    private mutating func log(_ text: String, _ isCentral: Bool) {
        if isCentral { centralLog.append(text) } else { peripheralLog.append(text) }
    }

    /// In pieces of 27 bytes, as a controller gives them.
    private mutating func carry(_ frame: L2CAPFrame, fromCentral: Bool) {
        var rest = frame.bytes[...]
        var boundary = ACLPacket.Boundary.firstFromController
        while !rest.isEmpty {
            let piece = Array(rest.prefix(27))
            rest = rest.dropFirst(27)
            let actions =
                fromCentral
                ? peripheral.pieceReceived(boundary, piece, now: .zero)
                : central.pieceReceived(boundary, piece, now: .zero)
            queue += actions.map { ($0, !fromCentral) }
            boundary = .continuation
        }
    }

    /// The controllers.
    private mutating func control(_ command: HCICommand, _ isCentral: Bool) {
        switch command.opcode {
        case .enableEncryption:
            key = Array(command.parameters.suffix(16))
            answer(command.opcode, .started, toCentral: true)
            let random = command.parameters[2..<10].reversed().reduce(0) { $0 << 8 | UInt64($1) }
            let diversifier = UInt16(command.parameters[10]) | UInt16(command.parameters[11]) << 8
            give(
                .longTermKeyRequested(Self.handle, random: random, diversifier: diversifier), toCentral: false)
        case .longTermKeyReply:
            answer(command.opcode, .completed([]), toCentral: isCentral)
            let isEqual = Array(command.parameters.suffix(16)) == key
            for side in [true, false] {
                give(
                    .encryptionChange(
                        isEqual ? .success : .integrityFailure, Self.handle, isEncrypted: isEqual), toCentral: side)
            }
        case .longTermKeyNegativeReply:
            answer(command.opcode, .completed([]), toCentral: isCentral)
            give(.encryptionChange(.keyMissing, Self.handle, isEncrypted: false), toCentral: true)
        case .disconnect:
            answer(command.opcode, .started, toCentral: isCentral)
            let reason = HCIStatus(rawValue: command.parameters[2])
            give(.disconnectionComplete(.success, Self.handle, reason: .localHostTerminated), toCentral: isCentral)
            give(.disconnectionComplete(.success, Self.handle, reason: reason), toCentral: !isCentral)
        case .updateConnection:
            answer(command.opcode, .started, toCentral: isCentral)
            let interval = UInt16(command.parameters[4]) | UInt16(command.parameters[5]) << 8
            let timeout = UInt16(command.parameters[8]) | UInt16(command.parameters[9]) << 8
            for side in [true, false] {
                give(
                    .connectionUpdated(
                        .success, Self.handle, .init(interval: interval, latency: 0, supervisionTimeout: timeout)),
                    toCentral: side)
            }
        case .readRemoteFeatures:
            answer(command.opcode, .started, toCentral: isCentral)
            give(.remoteFeatures(.success, Self.handle, [.dataLengthExtension, .twoMegabit]), toCentral: isCentral)
        case .setPHY:
            answer(command.opcode, .started, toCentral: isCentral)
            for side in [true, false] {
                give(.phyUpdated(.success, Self.handle, transmit: 2, receive: 2), toCentral: side)
            }
        default: answer(command.opcode, .completed([]), toCentral: isCentral)
        }
    }
}
