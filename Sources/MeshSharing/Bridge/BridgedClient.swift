// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCrypto
internal import MeshLoop
internal import MeshTransportAPI
internal import MeshWire

/// One program on a bridge, and its own connection to the share. Belongs to the ``ShareBridge``; used on the loop only.
///
///     connecting ──connected──▶ opening ──TLS is there──▶ proving ──admitted──▶ relaying ──both sides ended──▶ closed
///                                                 └────── no token ───────────────▲
///
/// - `connecting` waits for the bridge to reach the share.
/// - `opening` waits for the handshake of TLS; without TLS it takes no time.
/// - `proving` waits for the end of the proof.
/// - `relaying` carries bytes both ways, at the pace of whoever takes them.
///
/// The program is not read before `relaying`: what it sends waits in the kernel.
final class BridgedClient {
    private enum Phase {
        case connecting
        case opening(ShareStream)
        case proving(ShareStream)
        case relaying(ShareStream)
        case closed
    }

    /// Bytes that may wait for one side before the other is read no more.
    private static let writeLimit = 65_536
    /// How long the rest may take after one side has ended.
    private static let restLimit = Duration.seconds(60)

    let id: UInt64
    let peer: String
    private let settings: BridgeSettings
    private let local: LoopStream
    private let loop: EventLoop
    private let timer: LoopTimer
    private let onEvent: (BridgeEvent) -> Void
    private var phase = Phase.connecting
    private var proof: ShareProofStateMachine?
    private var decoder = CompanionFrameDecoder(.init(marker: .fromRadio))
    /// Who has ended its side.
    private var ended: BridgeSide?

    /// `onEvent` gets one `opened` at most, then one `closed` or `failed`, and nothing after that.
    init(
        id: UInt64, local: LoopStream, settings: BridgeSettings, loop: EventLoop,
        onEvent: @escaping (BridgeEvent) -> Void
    ) {
        self.id = id
        self.local = local
        self.settings = settings
        self.loop = loop
        self.onEvent = onEvent
        timer = LoopTimer(loop)
        peer =
            local.peerCredentials.map { "pid \($0.pid) uid \($0.uid)" } ?? local.peerAddress?.description ?? "unknown"
        proof = settings.token.map { ShareProofStateMachine(name: $0.name) }
    }

    /// Sets the limit for all that comes before the connection can be used.
    func start() {
        timer.schedule(after: settings.openingLimit) { [unowned self] in fail(MeshError(tooSlow: settings)) }
    }

    /// Ends both connections. No event follows.
    func close() {
        timer.cancel()
        switch phase {
        case .opening(let remote), .proving(let remote), .relaying(let remote): remote.close()
        case .connecting, .closed: break
        }
        phase = .closed
        local.close()
    }

    /// The connection cannot be made, or has broken.
    func fail(_ error: MeshError) {
        if case .closed = phase { return }
        close()
        onEvent(.failed(client: id, error))
    }

    /// The share is reached.
    func connected(_ stream: LoopStream, _ engine: TLSEngine?) {
        guard case .connecting = phase else { return }
        stream.setNoDelay()
        local.setNoDelay()
        // As shares do it: a peer that is silently gone is found within 90 s.
        stream.setKeepAlive(idle: .seconds(45), interval: .seconds(15), count: 3, unacknowledged: .seconds(90))
        let remote = ShareStream(stream, engine: engine, loop: loop)
        phase = .opening(remote)
        remote.startReading(
            onOpen: { [unowned self] in opened(remote) }, { [unowned self] in received($0) },
            onEnd: { [unowned self] in remoteEnded($0) })
    }

    private func opened(_ remote: ShareStream) {
        guard let frame = proof?.start() else { return relay(remote) }
        phase = .proving(remote)
        send(frame, remote)
    }

    // MARK: The proof

    private func received(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes[...]
        // One by one: what comes behind the last word of the proof is the program's.
        while case .proving(let remote) = phase, let byte = rest.popFirst() {
            withUnsafeBytes(of: byte) { one in
                decoder.bytesReceived(RawSpan(_unsafeBytes: one), now: loop.now) { frame in
                    proofReceived(frame.withUnsafeBytes { Data($0) }, remote)
                }
            }
        }
        guard case .relaying(let remote) = phase, !rest.isEmpty else { return }
        local.write(UnsafeRawBufferPointer(rebasing: rest))
        if local.pendingWriteBytes > Self.writeLimit { remote.pauseReading() }
    }

    private func proofReceived(_ frame: Data, _ remote: ShareStream) {
        guard case .proving = phase, let token = settings.token else { return }
        switch proof?.frameReceived(frame) ?? .ignore {
        case .computeCode(let nonce):
            do throws(CryptoError) {
                let code = try ShareProof.code(secret: token.secret, nonce: nonce, name: Array(token.name.utf8))
                if let answer = proof?.codeComputed(code) { send(answer, remote) }
            } catch {
                fail(MeshError(.internalError, "the proof of the token: \(error)", cause: error))
            }
        case .proceed:
            relay(remote)
        case .fail(let failure):
            fail(MeshError(proof: failure, of: token.name, to: settings))
        case .ignore:
            break
        }
    }

    private func send(_ frame: Data, _ remote: ShareStream) {
        var bytes: [UInt8] = []
        // A proof's frames are short, but the name: a longer one than a frame holds is refused before there is a bridge.
        frame.withUnsafeBytes {
            try? CompanionFrameEncoder(marker: .fromClient).encode(RawSpan(_unsafeBytes: $0), into: &bytes)
        }
        bytes.withUnsafeBytes { remote.write($0) }
    }

    // MARK: Relaying

    private func relay(_ remote: ShareStream) {
        timer.cancel()
        phase = .relaying(remote)
        onEvent(.opened(client: id, peer: peer, tls: remote.tlsVersion))
        remote.onDrained = { [unowned self] in local.resumeReading() }
        local.onDrained = { remote.resumeReading() }
        local.startReading { [unowned self] bytes in
            remote.write(bytes)
            if remote.pendingWriteBytes > Self.writeLimit { local.pauseReading() }
        } onEnd: { [unowned self] error in
            localEnded(error, remote)
        }
    }

    private func localEnded(_ error: LoopError?, _ remote: ShareStream) {
        if let error { return fail(MeshError(brokenBy: error)) }
        guard ended == nil else { return finish() }
        ended = .client
        // The share answers what it was asked, and closes.
        remote.finishWriting()
        timer.schedule(after: Self.restLimit) { [unowned self] in finish() }
    }

    private func remoteEnded(_ failure: ShareStream.Failure?) {
        guard case .relaying = phase else { return fail(MeshError(opening: failure, to: settings)) }
        if let failure { return fail(MeshError(broken: failure, to: settings)) }
        guard ended == nil else { return finish() }
        ended = .share
        local.finishWriting()
        timer.schedule(after: Self.restLimit) { [unowned self] in finish() }
    }

    private func finish() {
        close()
        onEvent(.closed(client: id, by: ended ?? .share))
    }
}
