// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshCrypto
import MeshTestSupport

/// A client's and a server's engine, and the wire between them in memory.
final class TLSPair {
    /// One end.
    final class End {
        let engine: TLSEngine
        /// What it sent and the other end has not got.
        var wire: [UInt8] = []
        /// What it got.
        var plaintext: [UInt8] = []
        var error: TLSError?

        init(_ engine: TLSEngine) {
            self.engine = engine
        }

        func collect() { engine.takeOutput { wire += $0 } }

        func write(_ bytes: [UInt8]) {
            bytes.withUnsafeBytes { buffer in note { () throws(TLSError) in try engine.write(buffer) } }
            collect()
        }

        func receive(_ bytes: [UInt8], onPlaintext: () -> Void = {}) {
            bytes.withUnsafeBytes { buffer in
                note { () throws(TLSError) in
                    try engine.received(buffer) {
                        plaintext += $0
                        onPlaintext()
                    }
                }
            }
            collect()
        }

        func endInput() { note { () throws(TLSError) in try engine.inputEnded() } }

        /// Keeps the first error.
        private func note(_ body: () throws(TLSError) -> Void) {
            do throws(TLSError) {
                try body()
            } catch {
                self.error = self.error ?? error
            }
        }

        func close() {
            engine.close()
            collect()
        }
    }

    let client: End
    let server: End

    init(
        certificates: String = Certificates.server + "\n" + Certificates.intermediate,
        key: String = Certificates.serverKey,
        trusting trust: TLSContext.Trust = .authorities(Array(Certificates.authority.utf8)),
        name: String = "radio.example"
    ) throws {
        let serverContext = try TLSContext(serverCertificates: Array(certificates.utf8), key: Array(key.utf8))
        client = End(try TLSContext(trusting: trust).makeEngine(serverName: name))
        server = End(try serverContext.makeEngine())
        try client.engine.start()
        client.collect()
    }

    /// Carries bytes both ways, so many at a time, until nobody has any.
    func run(pieces: Int = 100_000) {
        while !client.wire.isEmpty || !server.wire.isEmpty {
            move(from: client, to: server, pieces)
            move(from: server, to: client, pieces)
        }
    }

    func move(from: End, to: End, _ count: Int) {
        guard !from.wire.isEmpty else { return }
        let piece = Array(from.wire.prefix(count))
        from.wire.removeFirst(piece.count)
        to.receive(piece)
    }
}
