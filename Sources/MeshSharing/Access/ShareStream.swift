// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshCrypto
internal import MeshLoop

/// One connection of a share or to one, with TLS in between or without. Used on the loop's thread only.
///
/// Without TLS it is the stream itself: what arrives is handed on by the stream, and a write is one look at an optional more.
/// With TLS, bytes that wait are counted as they are on the wire, and reading and writing pause with the stream's.
///
/// Closures run on the loop's thread; none runs after ``close()``.
final class ShareStream {
    /// How a connection ended that did not end in good order.
    enum Failure: Error, Sendable, Hashable {
        case connection(LoopError)
        case tls(TLSError)
    }

    private let stream: LoopStream
    private let loop: EventLoop
    /// Nil without TLS, and after ``close()``.
    private var engine: TLSEngine?
    private var onOpen: (() -> Void)?
    private var onBytes: ((UnsafeRawBufferPointer) -> Void)?
    private var onEnd: ((Failure?) -> Void)?
    /// Whether bytes can be written: with TLS, once the handshake is done.
    private(set) var isOpen: Bool

    /// `engine` stands between this stream and the wire, if there is one.
    init(_ stream: LoopStream, engine: TLSEngine?, loop: EventLoop) {
        self.stream = stream
        self.loop = loop
        self.engine = engine
        isOpen = engine == nil
    }

    /// Ends the connection, and tells the peer so; bytes that the kernel has not taken are dropped.
    func close() {
        onOpen = nil
        onBytes = nil
        onEnd = nil
        if let engine {
            self.engine = nil
            engine.close()
            send(outputOf: engine)
        }
        stream.close()
    }

    // MARK: Reading

    /// Hands on what arrives until the end. `onOpen` runs before anything else, when the handshake of TLS is done, and
    /// without TLS before this returns. The bytes are valid during the call only. `onEnd` runs once: nil when the peer has
    /// ended its side in good order.
    func startReading(
        onOpen: (() -> Void)? = nil, _ onBytes: @escaping (UnsafeRawBufferPointer) -> Void,
        onEnd: @escaping (Failure?) -> Void
    ) {
        guard let engine else {
            stream.startReading(onBytes) { error in onEnd(error.map { .connection($0) }) }
            onOpen?()
            return
        }
        self.onOpen = onOpen
        self.onBytes = onBytes
        self.onEnd = onEnd
        stream.startReading { [unowned self] bytes in
            received(bytes)
        } onEnd: { [unowned self] error in
            ended(error)
        }
        do throws(TLSError) {
            // A client has the first word.
            try engine.start()
            send(outputOf: engine)
        } catch {
            loop.performLater { [weak self] in self?.end(.tls(error)) }
        }
    }

    /// Leaves further bytes in the kernel until ``resumeReading()``; with TLS, what has been read already still comes. The
    /// peer's end is not noticed meanwhile.
    func pauseReading() { stream.pauseReading() }

    /// Goes on after ``pauseReading()``.
    func resumeReading() {
        // After the peer's end there is nothing to be read, and the stream's own end says nothing new.
        if engine?.phase == .inputEnded { return }
        stream.resumeReading()
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        guard let engine else { return }
        do throws(TLSError) {
            try engine.received(bytes) { plaintext in
                opened()
                onBytes?(plaintext)
            }
        } catch {
            // A last word for the peer: why it is not heard any more.
            send(outputOf: engine)
            return end(.tls(error))
        }
        // Nothing may have come with the end of the handshake.
        if engine.phase != .handshaking { opened() }
        guard self.engine != nil else { return }
        send(outputOf: engine)
        if engine.phase == .inputEnded || engine.phase == .closed {
            stream.pauseReading()
            end(nil)
        }
    }

    private func opened() {
        guard !isOpen else { return }
        isOpen = true
        let onOpen = onOpen
        self.onOpen = nil
        onOpen?()
    }

    private func ended(_ error: LoopError?) {
        if let error { return end(.connection(error)) }
        do throws(TLSError) {
            try engine?.inputEnded()
            end(nil)
        } catch {
            end(.tls(error))
        }
    }

    private func end(_ failure: Failure?) {
        let onEnd = onEnd
        onOpen = nil
        onBytes = nil
        self.onEnd = nil
        onEnd?(failure)
    }

    // MARK: Writing

    /// Runs each time all written bytes have gone to the kernel.
    var onDrained: (() -> Void)? {
        get { stream.onDrained }
        set { stream.onDrained = newValue }
    }

    /// Bytes that were written and have not gone to the kernel yet.
    var pendingWriteBytes: Int { stream.pendingWriteBytes }

    /// Writes all bytes: at once what the kernel takes, the rest when it can. Only when ``isOpen``. `completion` runs in a
    /// later callback.
    func write(_ bytes: UnsafeRawBufferPointer, completion: ((LoopError?) -> Void)? = nil) {
        guard let engine else { return stream.write(bytes, completion: completion) }
        do throws(TLSError) {
            try engine.write(bytes)
            send(outputOf: engine, completion: completion)
        } catch {
            // OpenSSL has no memory left. Later: whoever writes does not expect the end of the stream meanwhile.
            loop.performLater { [weak self] in
                self?.end(.tls(error))
                completion?(LoopError(kind: .noResources, operation: "write", detail: error.description))
            }
        }
    }

    /// Tells the peer that nothing more comes, behind all that was written; it may still send.
    func finishWriting() {
        guard let engine else { return stream.finishWriting() }
        engine.finishWriting()
        send(outputOf: engine)
    }

    private func send(outputOf engine: TLSEngine, completion: ((LoopError?) -> Void)? = nil) {
        engine.takeOutput { stream.write($0, completion: completion) }
    }

    // MARK: Facts and options

    /// Bytes that the kernel has and the peer's has not acknowledged; for a Unix socket those that the peer has not read. Nil
    /// when the connection is closed.
    var unacknowledgedBytes: Int? { stream.unacknowledgedBytes }

    /// Whether the peer has reset the connection, though nothing was said of it.
    var isReset: Bool { stream.isReset }

    /// Whether the peer has closed or reset the connection, though that may not have been read yet.
    var isPeerGone: Bool { stream.isPeerGone }

    /// Such as `TLSv1.3`; nil without TLS.
    var tlsVersion: String? { isOpen ? engine?.version : nil }

    var peerAddress: SocketAddress? { stream.peerAddress }
    var peerCredentials: (pid: Int32, uid: UInt32, gid: UInt32)? { stream.peerCredentials }

    func setNoDelay() { stream.setNoDelay() }

    func setKeepAlive(idle: Duration, interval: Duration, count: Int32, unacknowledged: Duration) {
        stream.setKeepAlive(idle: idle, interval: interval, count: count, unacknowledged: unacknowledged)
    }
}
