// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import Testing

@testable import MeshSharing

struct FloodScopesTests {
    static let standard = CacheFrames.hex("36 00")
    static let unscoped = CacheFrames.hex("36 01")
    static let first = CacheFrames.hex("36 00 000102030405060708090a0b0c0d0e0f")
    static let second = CacheFrames.hex("36 00 ff0102030405060708090a0b0c0d0e0f")

    @Test func `a new link has a scope that nobody knows`() {
        let scopes = FloodScopes()
        #expect(scopes.lead(for: .unset) == Self.standard)
        #expect(scopes.lead(for: .frame(Self.first)) == Self.first)
    }

    @Test func `the radio is told only if it has another scope`() {
        var scopes = FloodScopes()
        for scope in [Self.standard, Self.first, Self.second, Self.unscoped] {
            scopes.scopeSet(scope)
            for wanted in [Self.standard, Self.first, Self.second, Self.unscoped] {
                #expect(scopes.lead(for: .frame(wanted)) == (wanted == scope ? nil : wanted))
            }
            #expect(scopes.lead(for: .unset) == (scope == Self.standard ? nil : Self.standard))
        }
    }

    @Test(arguments: [
        ("36 00", standard), ("36 00 0001", standard), ("36 00 00000000000000000000000000000000", standard),
        ("36 00 000102030405060708090a0b0c0d0e0f aabb", first), ("36 01 000102", unscoped),
    ])
    func `frames that mean the same are the same scope`(_ text: String, _ meaning: Data) {
        var scopes = FloodScopes()
        #expect(scopes.lead(for: .frame(CacheFrames.hex(text))) == meaning)
        scopes.scopeSet(CacheFrames.hex(text))
        #expect(scopes.lead(for: .frame(meaning)) == nil)
    }

    @Test func `what may have changed is told again`() {
        var scopes = FloodScopes()
        scopes.scopeSet(Self.first)
        scopes.doubt()
        #expect(scopes.lead(for: .frame(Self.first)) == Self.first)
        scopes.scopeSet(Self.first)
        scopes.linkLost()
        #expect(scopes.lead(for: .frame(Self.first)) == Self.first)
    }

    @Test func `an old radio is not told again, until the link changes`() {
        var scopes = FloodScopes()
        scopes.refused(Self.standard)
        for wanted in [FloodScopes.Wanted.unset, .frame(Self.first), .frame(Self.unscoped)] {
            #expect(scopes.lead(for: wanted) == nil)
        }
        #expect(!scopes.accepts(Self.first) && !scopes.accepts(Self.unscoped) && !scopes.accepts(Self.standard))
        scopes.linkLost()
        #expect(scopes.lead(for: .unset) == Self.standard)
    }

    @Test func `a radio that knows regions but not everywhere`() {
        var scopes = FloodScopes()
        scopes.refused(Self.unscoped)
        #expect(!scopes.accepts(Self.unscoped) && scopes.accepts(Self.first))
        #expect(scopes.lead(for: .frame(Self.unscoped)) == nil)
        #expect(scopes.lead(for: .frame(Self.first)) == Self.first)
    }

    @Test func `forms that no firmware knows are refused`() {
        let scopes = FloodScopes()
        #expect(scopes.accepts(Self.standard) && scopes.accepts(Self.first) && scopes.accepts(Self.unscoped))
        for frame in [CacheFrames.hex("36 02"), CacheFrames.hex("36"), Data(), CacheFrames.hex("37 00")] {
            #expect(!scopes.accepts(frame))
        }
    }

    @Test(arguments: CommandCode.allCases)
    func `only commands that may flood need a scope`(_ code: CommandCode) {
        let always: Set<CommandCode> = [
            .sendTextMessage, .sendChannelText, .sendLogin, .sendStatusRequest, .sendBinaryRequest,
            .sendAnonymousRequest, .sendPathDiscovery, .sendTelemetryRequest,
        ]
        // A path of three hops for SEND_CHANNEL_DATA, no flood for SEND_SELF_ADVERT.
        let command = Data([code.rawValue, 0, 3]) + Data(count: 60)
        #expect(FloodScopes.concerns(command) == always.contains(code))
    }

    @Test(arguments: [
        ("07", false), ("07 00", false), ("07 01", true),
        ("27 000000", false), ("27 000000 aa", true),
        ("3e 00 ff 0100 aa", true), ("3e 00 00 0100 aa", false),
        ("60 01", true), ("", false),
    ])
    func `some may flood or not`(_ text: String, _ expected: Bool) {
        #expect(FloodScopes.concerns(CacheFrames.hex(text)) == expected)
    }
}
