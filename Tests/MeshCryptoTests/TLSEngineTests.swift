// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshCrypto
import MeshTestSupport
import Testing

struct TLSEngineTests {
    /// Bytes that differ from their neighbours.
    static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 / 251) } }

    @Test(arguments: [1, 2, 3, 7, 64, 1_000, 100_000])
    func `data goes both ways, in whatever pieces the bytes come`(pieces: Int) throws {
        let pair = try TLSPair()
        pair.run(pieces: pieces)
        #expect(pair.client.engine.phase == .open && pair.server.engine.phase == .open)
        #expect(pair.client.engine.version == "TLSv1.3")
        for size in [1, 176, 16_384, 16_385, 70_000] {
            pair.client.write(Self.bytes(size))
            pair.server.write(Self.bytes(size).reversed())
            pair.run(pieces: pieces)
            #expect(pair.server.plaintext == Self.bytes(size))
            #expect(pair.client.plaintext == Self.bytes(size).reversed())
            pair.server.plaintext = []
            pair.client.plaintext = []
        }
        #expect(pair.client.error == nil && pair.server.error == nil)
    }

    @Test func `what is written is not what is on the wire`() throws {
        let pair = try TLSPair()
        pair.run()
        let secret = Array("a secret that nobody reads".utf8)
        pair.client.write(secret)
        let wire = pair.client.wire
        #expect(wire.count > secret.count)
        #expect(!wire.indices.contains { wire[$0...].starts(with: secret) })
    }

    @Test func `nothing is written before the handshake is done`() throws {
        let pair = try TLSPair()
        #expect(pair.client.engine.phase == .handshaking)
        pair.client.wire = []
        pair.client.write([1, 2, 3])
        #expect(pair.client.wire.isEmpty)
    }

    @Test func `the end of one side leaves the other way open`() throws {
        let pair = try TLSPair()
        pair.run()
        pair.client.write([1])
        pair.client.close()
        #expect(pair.client.engine.phase == .closed)
        pair.move(from: pair.client, to: pair.server, .max)
        #expect(pair.server.plaintext == [1])
        #expect(pair.server.engine.phase == .inputEnded)
        pair.server.endInput()
        #expect(pair.server.error == nil)
        pair.server.write([2])
        #expect(!pair.server.wire.isEmpty)
        // What comes after the end does not count.
        pair.server.receive(Self.bytes(100))
        #expect(pair.server.error == nil && pair.server.plaintext == [1])
    }

    @Test func `who writes no more may still read`() throws {
        let pair = try TLSPair()
        pair.run()
        pair.client.write([1])
        pair.client.engine.finishWriting()
        pair.client.collect()
        pair.client.write([2])
        pair.run()
        #expect(pair.server.plaintext == [1] && pair.server.engine.phase == .inputEnded)
        pair.server.write([3])
        pair.run()
        #expect(pair.client.plaintext == [3] && pair.client.engine.phase == .outputEnded)
        pair.server.engine.finishWriting()
        pair.server.collect()
        pair.run()
        #expect(pair.client.engine.phase == .closed && pair.server.engine.phase == .closed)
        pair.client.endInput()
        #expect(pair.client.error == nil && pair.server.error == nil)
    }

    @Test func `an end without TLS's own is told from an orderly one`() throws {
        let pair = try TLSPair()
        pair.run()
        pair.client.write([1])
        pair.run()
        pair.server.endInput()
        #expect(pair.server.error == .truncated)
        #expect(pair.server.engine.phase == .closed)
    }

    @Test func `a record that was cut off gives nothing`() throws {
        let pair = try TLSPair()
        pair.run()
        pair.client.write(Self.bytes(1_000))
        pair.client.wire.removeLast()
        pair.run()
        #expect(pair.server.plaintext.isEmpty && pair.server.error == nil)
        pair.server.endInput()
        #expect(pair.server.error == .truncated)
    }

    @Test func `a record that was changed ends the connection, and the peer is told`() throws {
        let pair = try TLSPair()
        pair.run()
        pair.client.write([1])
        pair.client.write([2])
        pair.client.wire[8] ^= 0x01
        pair.move(from: pair.client, to: pair.server, .max)
        guard case .corrupted? = pair.server.error else {
            Issue.record("\(String(describing: pair.server.error))")
            return
        }
        #expect(pair.server.plaintext.isEmpty && pair.server.engine.phase == .closed)
        pair.run()
        guard case .endedByPeer? = pair.client.error else {
            Issue.record("\(String(describing: pair.client.error))")
            return
        }
    }

    @Test func `a peer that closes in the middle of the handshake is noticed`() throws {
        let pair = try TLSPair()
        pair.move(from: pair.client, to: pair.server, 100)
        pair.server.endInput()
        #expect(pair.server.error == .handshakeFailed(reason: "the peer closed the connection"))
        pair.client.endInput()
        #expect(pair.client.error == .handshakeFailed(reason: "the peer closed the connection"))
    }

    enum Garbage: CaseIterable {
        case anotherProtocol, aCompanionFrame, zeros, noise, tooLongARecord

        var bytes: [UInt8] {
            switch self {
            case .anotherProtocol: Array("GET / HTTP/1.1\r\nHost: radio.example\r\n\r\n".utf8)
            case .aCompanionFrame: [0x3C, 0x02, 0x00, 0x16, 0x03]
            case .zeros: Array(repeating: 0, count: 100_000)
            case .noise: TLSEngineTests.bytes(5_000)
            // 65,535 bytes, which is longer than there may be.
            case .tooLongARecord: [0x16, 0x03, 0x01, 0xFF, 0xFF] + TLSEngineTests.bytes(70_000)
            }
        }
    }

    @Test(arguments: Garbage.allCases)
    func `bytes that are no TLS end the handshake`(kind: Garbage) throws {
        let garbage = kind.bytes
        for pieces in [1, 5, 100_000] where garbage.count < 1_000 || pieces > 1 {
            let pair = try TLSPair()
            pair.client.wire = garbage
            while !pair.client.wire.isEmpty { pair.move(from: pair.client, to: pair.server, pieces) }
            pair.server.endInput()
            guard case .handshakeFailed? = pair.server.error else {
                Issue.record("\(String(describing: pair.server.error))")
                return
            }
            #expect(pair.server.plaintext.isEmpty)
        }
    }

    @Test func `the other end may close while it gets something`() throws {
        let pair = try TLSPair()
        pair.run()
        for _ in 0..<3 { pair.client.write([1]) }
        var calls = 0
        pair.server.receive(pair.client.wire) {
            calls += 1
            pair.server.engine.close()
        }
        #expect(calls == 1 && pair.server.engine.phase == .closed)
    }
}

struct TLSTrustTests {
    static func outcome(_ pair: TLSPair) -> TLSError? {
        pair.run()
        #expect((pair.client.error == nil) == (pair.client.engine.phase == .open))
        return pair.client.error
    }

    @Test(arguments: ["radio.example", "127.0.0.1", "::1"])
    func `a server with the right name and a known authority is trusted`(name: String) throws {
        #expect(Self.outcome(try TLSPair(name: name)) == nil)
    }

    @Test(arguments: ["other.example", "127.0.0.2", "::2"])
    func `a server with another name is not`(name: String) throws {
        guard case .certificateRefused(let reason)? = Self.outcome(try TLSPair(name: name)) else {
            Issue.record("it was trusted")
            return
        }
        #expect(reason.contains("mismatch"))
    }

    @Test func `an authority that has not signed it is not enough, and the server is told`() throws {
        let pair = try TLSPair(trusting: .authorities(Array(Certificates.otherAuthority.utf8)))
        guard case .certificateRefused? = Self.outcome(pair) else {
            Issue.record("it was trusted")
            return
        }
        guard case .endedByPeer? = pair.server.error else {
            Issue.record("\(String(describing: pair.server.error))")
            return
        }
    }

    @Test func `the system's authorities know nothing of a test's`() throws {
        guard case .certificateRefused? = Self.outcome(try TLSPair(trusting: .system)) else {
            Issue.record("it was trusted")
            return
        }
    }

    @Test func `a certificate that has expired is refused`() throws {
        let pair = try TLSPair(
            certificates: Certificates.expired + "\n" + Certificates.intermediate, key: Certificates.expiredKey)
        #expect(Self.outcome(pair) == .certificateRefused(reason: "certificate has expired"))
    }

    @Test func `the server's own certificate or an intermediate authority may be all that is known`() throws {
        for known in [Certificates.server, Certificates.intermediate] {
            #expect(Self.outcome(try TLSPair(trusting: .authorities(Array(known.utf8)))) == nil)
        }
    }

    @Test func `a pinned certificate needs no name and no authority, and no other one passes`() throws {
        #expect(
            Self.outcome(try TLSPair(trusting: .pinned(sha256: Certificates.serverDigest), name: "192.0.2.1")) == nil)
        var other = Certificates.serverDigest
        other[31] ^= 1
        #expect(Self.outcome(try TLSPair(trusting: .pinned(sha256: other))) == .pinDiffers)
        #expect(Self.outcome(try TLSPair(trusting: .pinned(sha256: []))) == .pinDiffers)
    }
}

struct TLSContextTests {
    static func error(certificates: String, key: String) -> TLSError? {
        do {
            _ = try TLSContext(serverCertificates: Array(certificates.utf8), key: Array(key.utf8))
            return nil
        } catch {
            return error
        }
    }

    @Test func `a certificate and its key are taken`() {
        #expect(Self.error(certificates: Certificates.server, key: Certificates.serverKey) == nil)
    }

    @Test func `what is no certificate is refused with the reason`() {
        for text in [
            "", "hello", Certificates.serverKey, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        ] {
            guard case .certificateUnusable(let reason)? = Self.error(certificates: text, key: Certificates.serverKey)
            else {
                Issue.record("\(text) was taken")
                return
            }
            #expect(!reason.isEmpty)
        }
        // The second one is broken.
        let cut = Certificates.server + "\n" + Certificates.intermediate.prefix(300)
        guard case .certificateUnusable? = Self.error(certificates: cut, key: Certificates.serverKey) else {
            Issue.record("half a chain was taken")
            return
        }
    }

    @Test func `what is no key, or one that needs a passphrase, is refused`() {
        for text in ["", "hello", Certificates.server, Certificates.lockedKey] {
            guard case .keyUnusable(let reason)? = Self.error(certificates: Certificates.server, key: text) else {
                Issue.record("\(text) was taken")
                return
            }
            #expect(!reason.isEmpty)
        }
    }

    @Test func `a key of another certificate is refused`() {
        #expect(
            Self.error(certificates: Certificates.server, key: Certificates.expiredKey) == .keyOfAnotherCertificate)
    }

    @Test func `authorities must be certificates`() {
        for text in ["", "hello", Certificates.serverKey] {
            guard
                case .authoritiesUnusable? = #expect(
                    throws: TLSError.self, performing: { try TLSContext(trusting: .authorities(Array(text.utf8))) })
            else {
                Issue.record("\(text) was taken")
                return
            }
        }
    }

    @Test func `connections keep the context that they were made with`() throws {
        var context: TLSContext? = try TLSContext(
            serverCertificates: Array(Certificates.server.utf8), key: Array(Certificates.serverKey.utf8))
        let engine = try #require(context).makeEngine()
        context = nil
        #expect(engine.phase == .handshaking)
    }
}
