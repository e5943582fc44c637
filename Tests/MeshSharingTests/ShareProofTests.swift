// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTestSupport
import Testing

@testable import MeshSharing

/// Both sides of the proof of a token.
struct ShareProofTests {
    static let nonce = Array(0..<32 as Range<UInt8>)
    static let secret = "0123456789abcdef"
    static let alice = Array("alice".utf8)
    /// Python 3.11: hmac.new(b"0123456789abcdef", b"meshhost share v1" + bytes(range(32)) + b"alice", "sha256").
    static let code: [UInt8] = [
        0xE1, 0xC2, 0xDE, 0xA3, 0xAC, 0x17, 0x68, 0x2C, 0x5B, 0x1A, 0x2C, 0x0A, 0xDF, 0xD9, 0x56, 0x7B,
        0x0A, 0xCC, 0x9F, 0xAD, 0xF5, 0xF6, 0x02, 0x3E, 0x30, 0xE4, 0xC6, 0x29, 0x6F, 0x9E, 0x85, 0x54,
    ]
    static let nameFrame = Data([0x7E, 0x00]) + Data("alice".utf8)
    static let codeFrame = Data([0x7E, 0x01]) + Data(code)

    enum Phase: CaseIterable {
        case waitingForName, waitingForChallenge, waitingForProof, admitted, refused
    }

    static func machine(_ phase: Phase, isKnown: Bool = true) -> ShareAccessStateMachine {
        var machine = ShareAccessStateMachine(now: .seconds(100))
        switch phase {
        case .waitingForName: break
        case .waitingForChallenge: _ = machine.frameReceived(nameFrame)
        case .waitingForProof, .admitted:
            _ = machine.frameReceived(nameFrame)
            _ = machine.challengeDrawn(nonce: nonce, code: code, isKnown: isKnown)
            if phase == .admitted { _ = machine.frameReceived(codeFrame) }
        case .refused: _ = machine.frameReceived(Data([0x01]))
        }
        return machine
    }

    @Test func `the code is that of an independent implementation`() throws {
        #expect(try ShareProof.code(secret: Self.secret, nonce: Self.nonce, name: Self.alice) == Self.code)
    }

    @Test func `no command of the companion protocol begins like a proof`() {
        #expect(CommandCode(rawValue: ShareProof.code) == nil)
        #expect(ReplyCode(rawValue: ShareProof.code) == nil)
        #expect(!PushCode.isPush(ShareProof.code))
        #expect(CommandCode.allCases.allSatisfy { $0.rawValue < 0x50 })
    }

    @Test func `who has the secret is admitted`() {
        var machine = ShareAccessStateMachine(now: .zero)
        #expect(machine.frameReceived(Self.nameFrame) == .drawChallenge(name: Self.alice))
        #expect(
            machine.challengeDrawn(nonce: Self.nonce, code: Self.code, isKnown: true)
                == .send(Data([0x7E]) + Data(Self.nonce)))
        #expect(machine.frameReceived(Self.codeFrame) == .admit(name: Self.alice, reply: Data([0x00])))
        #expect(machine.nextDeadline == nil)
        #expect(machine.frameReceived(Self.codeFrame) == .ignore)
    }

    @Test func `an unknown name is asked like a known one, and told nothing else in the end`() {
        var machine = Self.machine(.waitingForProof, isKnown: false)
        // Even with the very code that was computed in its place.
        #expect(machine.frameReceived(Self.codeFrame) == .refuse(reply: Data([0x01, 0x06]), isFailure: true))
    }

    @Test(arguments: 0..<32)
    func `a code with one wrong byte is refused`(index: Int) {
        var machine = Self.machine(.waitingForProof)
        var frame = Self.codeFrame
        frame[2 + index] ^= 0x01
        #expect(machine.frameReceived(frame) == .refuse(reply: Data([0x01, 0x06]), isFailure: true))
    }

    @Test func `a code that is short, long, or no code at all is refused`() {
        for frame in [Data(), Data([0x7E, 0x01]), Self.codeFrame.dropLast(), Self.codeFrame + [0], Self.nameFrame] {
            var machine = Self.machine(.waitingForProof)
            #expect(machine.frameReceived(frame) == .refuse(reply: Data([0x01, 0x06]), isFailure: true))
        }
    }

    @Test func `any other first frame is not supported and no guess`() {
        for frame in [
            Data([0x01] + Array(repeating: 0, count: 7)), Data([0x7E]), Data(), Self.codeFrame, Data([0x16, 3]),
        ] {
            var machine = Self.machine(.waitingForName)
            #expect(machine.frameReceived(frame) == .refuse(reply: Data([0x01, 0x01]), isFailure: false))
            #expect(machine.frameReceived(Self.nameFrame) == .ignore)
        }
    }

    @Test(arguments: Phase.allCases)
    func `every state has an answer to every input`(phase: Phase) {
        let isWaiting = [.waitingForName, .waitingForChallenge, .waitingForProof].contains(phase)

        var named = Self.machine(phase)
        switch phase {
        case .waitingForName: #expect(named.frameReceived(Self.nameFrame) == .drawChallenge(name: Self.alice))
        case .waitingForChallenge, .waitingForProof:
            #expect(named.frameReceived(Self.nameFrame) == .refuse(reply: Data([0x01, 0x06]), isFailure: true))
        case .admitted, .refused: #expect(named.frameReceived(Self.nameFrame) == .ignore)
        }

        var drawn = Self.machine(phase)
        let isAsked = drawn.challengeDrawn(nonce: Self.nonce, code: Self.code, isKnown: true) != .none
        #expect(isAsked == (phase == .waitingForChallenge))

        var early = Self.machine(phase)
        #expect(early.nextDeadline == (isWaiting ? .seconds(110) : nil))
        #expect(early.deadlineReached(now: .seconds(109)) == .none)
        #expect(early.deadlineReached(now: .seconds(110)) == (isWaiting ? .close : .none))
        #expect(early.deadlineReached(now: .seconds(111)) == .none)
        #expect(early.frameReceived(Self.nameFrame) == .ignore || !isWaiting)
    }

    @Test func `a challenge that nobody asked for changes nothing`() {
        var machine = Self.machine(.waitingForProof)
        #expect(machine.challengeDrawn(nonce: Self.nonce, code: Array(repeating: 0, count: 32), isKnown: true) == .none)
        #expect(machine.frameReceived(Self.codeFrame) == .admit(name: Self.alice, reply: Data([0x00])))
    }

    @Test func `garbage is never admitted`() {
        let seed = UInt64.random(in: .min ... .max)
        var generator = SplitMix(state: seed)
        for _ in 0..<2_000 {
            var machine = Self.machine(Bool.random(using: &generator) ? .waitingForName : .waitingForProof)
            for _ in 0..<3 {
                var frame = Data((0..<Int.random(in: 0...40, using: &generator)).map { _ in UInt8(0x7E) })
                for index in frame.indices where Bool.random(using: &generator) {
                    frame[index] = UInt8.random(in: 0...255, using: &generator)
                }
                if case .admit = machine.frameReceived(frame) {
                    Issue.record("admitted by \(Array(frame)), seed \(seed)")
                }
            }
        }
    }

    // MARK: The client's side

    static func client(after frames: [Data] = []) -> ShareProofStateMachine {
        var machine = ShareProofStateMachine(name: "alice")
        _ = machine.start()
        for frame in frames {
            if case .computeCode = machine.frameReceived(frame) { _ = machine.codeComputed(code) }
        }
        return machine
    }

    static let nonceFrame = Data([0x7E]) + Data(nonce)

    @Test func `both sides come to an end with each other`() throws {
        var client = ShareProofStateMachine(name: "alice")
        var host = ShareAccessStateMachine(now: .zero)
        guard case .drawChallenge(let name) = host.frameReceived(client.start()) else {
            Issue.record("no name")
            return
        }
        let code = try ShareProof.code(secret: Self.secret, nonce: Self.nonce, name: name)
        guard case .send(let question) = host.challengeDrawn(nonce: Self.nonce, code: code, isKnown: true) else {
            Issue.record("no question")
            return
        }
        #expect(client.frameReceived(question) == .computeCode(nonce: Self.nonce))
        guard case .admit(_, let reply) = host.frameReceived(client.codeComputed(Self.code)) else {
            Issue.record("not admitted")
            return
        }
        #expect(client.frameReceived(reply) == .proceed)
    }

    @Test func `a client is told why it is not admitted`() {
        var client = Self.client()
        #expect(client.frameReceived(Data([0x01, 0x01])) == .fail(.notWanted))
        client = Self.client()
        #expect(client.frameReceived(Data([0x05])) == .fail(.unexpectedFrame))
        client = Self.client()
        #expect(client.frameReceived(Self.nonceFrame.dropLast()) == .fail(.unexpectedFrame))
        client = Self.client(after: [Self.nonceFrame])
        #expect(client.frameReceived(Data([0x01, 0x06])) == .fail(.refused))
        client = Self.client(after: [Self.nonceFrame])
        #expect(client.frameReceived(Data([0x83])) == .fail(.unexpectedFrame))
        #expect(client.frameReceived(Data([0x00])) == .ignore)
    }
}
