// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import Testing

struct ControllerSetupTests {
    private typealias Machine = ControllerSetupStateMachine
    private let random = DeviceAddress(0xC000_0000_0001, .random)

    /// A controller as a table of answers; what it lacks it refuses as unknown.
    private struct Controller {
        var answers: [HCIOpcode: [UInt8]]
        var refusals: [HCIOpcode: HCIStatus] = [:]
        var sent: [HCICommand] = []

        mutating func run(_ machine: inout ControllerSetupStateMachine) -> ControllerSetupStateMachine.Action {
            var action = machine.start()
            while case .send(let command) = action {
                sent.append(command)
                let outcome: HCICommandOutcome =
                    refusals[command.opcode].map { .refused($0) }
                    ?? answers[command.opcode].map { .completed($0) } ?? .refused(.unknownCommand)
                guard let next = machine.commandFinished(outcome) else { break }
                action = next
            }
            return action
        }
    }

    /// The answers of Bumble's virtual controller in a transcript.
    private func recorded() throws -> Controller {
        var answers: [HCIOpcode: [UInt8]] = [:]
        for event in try Transcript("passkey_sc").events() {
            if case .commandComplete(let opcode, let parameters, _) = event, answers[opcode] == nil {
                answers[opcode] = Array(parameters.dropFirst())
            }
        }
        // What Bumble's host did not ask and its controller says it supports.
        for opcode: HCIOpcode in [.readAcceptListSize, .readResolvingListSize] { answers[opcode] = [8] }
        answers[.readMaximumDataLength] = hex("fb00 4808 fb00 4808")
        for opcode: HCIOpcode in [
            .clearResolvingList, .setDefaultPHY, .addToResolvingList, .setAddressResolutionEnable,
        ] {
            answers[opcode] = []
        }
        answers[.setPrivateAddressTimeout] = []
        return Controller(answers: answers)
    }

    @Test func `a controller of the transcripts is set up`() throws {
        var machine = Machine(.init(randomAddress: random))
        var controller = try recorded()
        guard case .finish(let descriptor) = controller.run(&machine) else {
            Issue.record("\(controller.sent.last?.opcode as Any)")
            return
        }
        #expect(descriptor.hciVersion == 9)
        #expect(descriptor.features.contains([.dataLengthExtension, .twoMegabit, .extendedAdvertising]))
        #expect(descriptor.publicAddress == DeviceAddress(0x00AA_BBCC_DD00, .public))
        #expect(descriptor.ownAddress == descriptor.publicAddress)
        #expect(descriptor.buffers == .init(packetLength: 27, count: 64))
        // It says the extended commands are not supported, whatever its feature bit says.
        #expect(descriptor.family == .legacy)
        #expect(descriptor.maximumDataLength == .maximum)
        #expect(controller.sent.contains(.writeDefaultDataLength(.maximum)))
        #expect(!controller.sent.map(\.opcode).contains(.setRandomAddress))
        #expect(!controller.sent.map(\.opcode).contains(.readBufferSize))
    }

    /// All that a controller must have, and no more.
    private let minimal: [HCIOpcode: [UInt8]] = [
        .readLEFeatures: [UInt8](repeating: 0, count: 8), .readLEBufferSize: [0, 0, 0],
        .readBufferSize: hex("fd03 40 0800 0000"), .setEventMask: [], .setLEEventMask: [], .setRandomAddress: [],
    ]

    @Test func `buffers of BR/EDR are used where LE has none`() {
        var machine = Machine(.init(randomAddress: random))
        var controller = Controller(answers: minimal)
        guard case .finish(let descriptor) = controller.run(&machine) else {
            Issue.record("not set up")
            return
        }
        #expect(descriptor.buffers == .init(packetLength: 1021, count: 8))
        #expect(descriptor.ownAddress == random)
        #expect(descriptor.family == .legacy)
        #expect(controller.sent.map(\.opcode).contains(.setRandomAddress))
    }

    @Test func `an address of zeros is no address`() {
        var answers = minimal
        answers[.readAddress] = [UInt8](repeating: 0, count: 6)
        var machine = Machine(.init(randomAddress: random))
        var controller = Controller(answers: answers)
        guard case .finish(let descriptor) = controller.run(&machine) else {
            Issue.record("not set up")
            return
        }
        #expect(descriptor.publicAddress == nil)
        #expect(descriptor.ownAddress == random)
    }

    @Test func `what nothing works without has to work`() {
        for opcode in [HCIOpcode.readLEFeatures, .readBufferSize, .setEventMask, .setLEEventMask, .setRandomAddress] {
            var machine = Machine(.init(randomAddress: random))
            var controller = Controller(answers: minimal, refusals: [opcode: .commandDisallowed])
            #expect(controller.run(&machine) == .fail(.refused(opcode, .commandDisallowed)))
            var short = minimal
            if short[opcode]?.isEmpty == false {
                short[opcode] = [1]
                var second = Machine(.init(randomAddress: random))
                var other = Controller(answers: short)
                #expect(other.run(&second) == .fail(.meaninglessAnswer(opcode)))
            }
        }
        var answers = minimal
        answers[.readBufferSize] = hex("1b00 00 0000 0000")
        var machine = Machine(.init(randomAddress: random))
        var controller = Controller(answers: answers)
        #expect(controller.run(&machine) == .fail(.noBuffers))
    }

    @Test func `bonds go into the resolving list as far as it has room`() throws {
        var configuration = Machine.Configuration(randomAddress: random)
        configuration.identities = (1...4).map {
            (DeviceAddress(UInt64($0) | 0xC000_0000_0000, .random), [UInt8](repeating: UInt8($0), count: 16))
        }
        var controller = try recorded()
        controller.answers[.readResolvingListSize] = [3]
        controller.answers[.readLEFeatures] = hex("ff79010000000000")
        var machine = Machine(configuration)
        guard case .finish(let descriptor) = controller.run(&machine) else {
            Issue.record("not set up")
            return
        }
        #expect(descriptor.resolvedIdentities.count == 3)
        #expect(controller.sent.contains(.setAddressResolutionEnable(true)))
        // A list that is fuller than it says ends nothing.
        controller.refusals[.addToResolvingList] = .memoryExceeded
        controller.sent = []
        guard case .finish(let other) = controller.run(&machine) else {
            Issue.record("not set up")
            return
        }
        #expect(other.resolvedIdentities.isEmpty)
        #expect(controller.sent.filter { $0.opcode == .addToResolvingList }.count == 3)
        #expect(!controller.sent.contains(.setAddressResolutionEnable(true)))
    }

    @Test func `a bonded device is heard by its identity address, too, or the list stays empty`() throws {
        var configuration = Machine.Configuration(randomAddress: random)
        configuration.identities = [(random, [UInt8](repeating: 1, count: 16))]
        var controller = try recorded()
        controller.answers[.readLEFeatures] = hex("ff79010000000000")
        controller.answers[.setPrivacyMode] = []
        var machine = Machine(configuration)
        _ = controller.run(&machine)
        #expect(controller.sent.contains(.setDevicePrivacyMode(random)))
        // Without the mode the device would not be heard; the host resolves.
        controller.answers[.readSupportedCommands]?[39] &= ~0x04
        controller.sent = []
        var other = Machine(configuration)
        guard case .finish(let descriptor) = controller.run(&other) else {
            Issue.record("not set up")
            return
        }
        #expect(descriptor.resolvedIdentities.isEmpty)
        #expect(!controller.sent.map(\.opcode).contains(.addToResolvingList))
        #expect(!controller.sent.contains(.setAddressResolutionEnable(true)))
    }

    @Test func `the extended family is used where all of it is there`() throws {
        var controller = try recorded()
        controller.answers[.readSupportedCommands]?[37] = 0xE0
        var machine = Machine(.init(randomAddress: random))
        guard case .finish(let descriptor) = controller.run(&machine) else {
            Issue.record("not set up")
            return
        }
        #expect(descriptor.family == .extended)
        var settings = Machine.Configuration(randomAddress: random)
        settings.allowsExtendedFamily = false
        var other = Machine(settings)
        guard case .finish(let legacy) = controller.run(&other) else {
            Issue.record("not set up")
            return
        }
        #expect(legacy.family == .legacy)
    }

    @Test func `a reset in between ends it, and late answers change nothing`() {
        var machine = Machine(.init(randomAddress: random))
        _ = machine.start()
        #expect(machine.commandFinished(.lost) == .fail(.interrupted))
        #expect(machine.commandFinished(.completed([])) == nil)
    }
}
