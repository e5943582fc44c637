// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTestSupport
import MeshWire
import Testing

@testable import MeshBluetoothStack

struct GATTCacheTests {
    private typealias Machine = GATTCacheStateMachine
    private static let service = RemoteService(uuid: LinkPair.uart, range: .init(14, 19))
    private static let characteristics = [
        RemoteCharacteristic(uuid: LinkPair.receive, properties: 0x0C, declarationHandle: 15, valueHandle: 16),
        RemoteCharacteristic(uuid: LinkPair.send, properties: 0x10, declarationHandle: 17, valueHandle: 18),
    ]
    private static let hash = [UInt8](1...16)
    private static let absent = Result<GATTResult, GATTFailure>.failure(.refused(.attributeNotFound, handle: 1))

    private static func database(_ tag: RemoteDatabase.Tag, serviceChanged: UInt16? = nil) -> RemoteDatabase {
        RemoteDatabase(
            tag: tag, services: [.init(service, characteristics: characteristics)], configurations: [18: 19],
            serviceChanged: serviceChanged)
    }

    /// A link without anything known, up to its use.
    private func discovered(old: RemoteDatabase? = nil) -> Machine {
        var machine = Machine(stored: old)
        #expect(machine.services(LinkPair.uart) == .discover)
        machine.servicesFound([Self.service])
        #expect(machine.characteristics(Self.service.range) == nil)
        machine.characteristicsFound(Self.characteristics, in: Self.service.range)
        // One descriptor fits behind a value that notifies.
        #expect(machine.configuration(of: 18, last: 19) == .known(19))
        machine.configurationFound(19, of: 18)
        return machine
    }

    @Test func `the first link learns, with the hash and the place of Service Changed`() {
        var machine = discovered()
        #expect(machine.setUpFinished(isBonded: true) == .ask(.readByType(.databaseHash)))
        #expect(machine.learned(.success(.value(Self.hash))) == .ask(.readByType(.serviceChanged)))
        // It cannot be read, and the refusal says where it is.
        #expect(
            machine.learned(.failure(.refused(.readNotPermitted, handle: 10)))
                == .ask(.discoverDescriptors(.init(11, 11))))
        #expect(
            machine.learned(.success(.descriptors([.init(11, .clientConfiguration)])))
                == .ask(.write(11, [2, 0])))
        #expect(
            machine.learned(.success(.written)) == .store(Self.database(.hash(Self.hash), serviceChanged: 10)))
        #expect(!machine.isHit)
    }

    @Test func `without a bond nothing is subscribed to`() {
        var machine = discovered()
        _ = machine.setUpFinished(isBonded: false)
        #expect(machine.learned(.success(.value(Self.hash))) == .store(Self.database(.hash(Self.hash))))
    }

    @Test func `without a hash the firmware's name stands for it, and without both nothing does`() {
        var named = discovered()
        _ = named.setUpFinished(isBonded: true)
        #expect(named.learned(Self.absent) == .ask(.readByType(.firmwareRevision)))
        #expect(named.learned(.success(.value([0x31]))) == .ask(.readByType(.serviceChanged)))
        #expect(named.learned(Self.absent) == .store(Self.database(.firmware([0x31]))))
        var nameless = discovered()
        _ = nameless.setUpFinished(isBonded: true)
        _ = nameless.learned(Self.absent)
        #expect(nameless.learned(Self.absent) == .store(Self.database(.absent)))
        // What is stored so is not used, and not asked for again while the build is the same.
        var next = discovered(old: Self.database(.absent))
        #expect(next.setUpFinished(isBonded: true) == .nothing)
        var other = discovered(old: RemoteDatabase(tag: .absent))
        #expect(other.setUpFinished(isBonded: true) == .ask(.readByType(.databaseHash)))
    }

    @Test(arguments: [RemoteDatabase.Tag.hash([UInt8](1...16)), .firmware([0x31])])
    func `the same tag saves the discovery`(tag: RemoteDatabase.Tag) {
        var machine = Machine(stored: Self.database(tag))
        guard case .check(let check) = machine.services(LinkPair.uart) else {
            Issue.record("not checked")
            return
        }
        if case .hash(let value) = tag {
            #expect(check == .readByType(.databaseHash))
            machine.tagRead(.success(.value(value)))
        } else {
            #expect(check == .readByType(.firmwareRevision))
            machine.tagRead(.success(.value([0x31])))
        }
        #expect(machine.isHit)
        #expect(machine.services(LinkPair.uart) == .known([Self.service]))
        #expect(machine.characteristics(Self.service.range) == Self.characteristics)
        #expect(machine.configuration(of: 18, last: 30) == .known(19))
        // One that was never looked for is looked for.
        #expect(machine.services(.genericAttribute) == .discover)
        #expect(machine.setUpFinished(isBonded: true) == .nothing)
    }

    @Test func `another tag, or none any more, is a new discovery (R19)`() {
        for result in [.success(.value([UInt8](repeating: 9, count: 16))), Self.absent] {
            var machine = Machine(stored: Self.database(.hash(Self.hash)))
            machine.tagRead(result)
            #expect(!machine.isHit)
            #expect(machine.services(LinkPair.uart) == .discover)
            #expect(machine.characteristics(Self.service.range) == nil)
            #expect(machine.configuration(of: 18, last: 30) == .discover)
            // Handles that are refused then are not stored ones.
            #expect(machine.refused(.invalidHandle) == .nothing)
        }
    }

    @Test func `a stored handle that is refused ends the link, once (R19)`() {
        for code in [ATTErrorCode.invalidHandle, .attributeNotFound, .writeNotPermitted, .databaseOutOfSync] {
            var machine = Machine(stored: Self.database(.hash(Self.hash)))
            machine.tagRead(.success(.value(Self.hash)))
            // The device may want a pairing, or no such value: that says nothing of handles.
            #expect(machine.refused(.insufficientAuthentication) == .nothing)
            #expect(machine.refused(.invalidValueLength) == .nothing)
            #expect(machine.refused(code) == .forgetAndEnd)
            #expect(machine.refused(code) == .nothing)
        }
    }

    @Test func `Service Changed before anything was used costs no link, and later it does`() {
        var early = Machine(stored: Self.database(.hash(Self.hash), serviceChanged: 10))
        #expect(early.indicationReceived(18) == .nothing)
        #expect(early.indicationReceived(10) == .forget)
        #expect(early.services(LinkPair.uart) == .discover)
        var late = Machine(stored: Self.database(.hash(Self.hash), serviceChanged: 10))
        late.tagRead(.success(.value(Self.hash)))
        #expect(late.indicationReceived(10) == .forgetAndEnd)
        #expect(late.indicationReceived(10) == .nothing)
    }

    @Test func `a link that ends while it is learnt stores nothing`() {
        var machine = discovered()
        _ = machine.setUpFinished(isBonded: true)
        #expect(machine.learned(.failure(.bearerEnded)) == .nothing)
        #expect(machine.learned(.success(.value(Self.hash))) == .nothing)
    }

    /// Answers in any order and of any kind: learning takes five requests at most, and ends.
    @Test(arguments: 0..<40) func `any answers have a defined end`(seed: UInt64) {
        var random = SplitMix(state: seed)
        let answers: [Result<GATTResult, GATTFailure>] = [
            .success(.value([])), .success(.value(Self.hash)), .success(.written), .success(.descriptors([])),
            .success(.descriptors([.init(11, .clientConfiguration)])), Self.absent,
            .failure(.refused(.readNotPermitted, handle: .random(in: 0 ... .max, using: &random))),
            .failure(.meaninglessAnswer),
        ]
        var machine = discovered()
        var action = machine.setUpFinished(isBonded: Bool.random(using: &random))
        var asked = 0
        while case .ask = action {
            asked += 1
            if Int.random(in: 0..<10, using: &random) == 0 { _ = machine.indicationReceived(18) }
            action = machine.learned(answers.randomElement(using: &random) ?? Self.absent)
        }
        #expect(asked <= 5)
        if case .store(let database) = action { #expect(database.services.count == 1) }
    }
}
