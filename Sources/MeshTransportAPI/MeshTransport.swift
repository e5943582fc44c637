// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// A link to one device that carries whole frames both ways.
///
/// One element of ``receivedData`` is one frame of the device's protocol: a stream transport does the framing, a BLE
/// notification already is a frame. The protocol knows nothing of BLE, sockets or serial ports; what a transport can do
/// beyond it lives in ``TransportFactory``, ``LinkEvent``, ``TransportScanning`` and ``TransportDiagnosing``.
///
/// Rules every transport keeps (`MeshTransportTesting` checks them):
/// - `connect` returns when frames can be sent, or throws a ``MeshError``; cancelling its task ends the attempt, and it
///   then throws ``MeshError/Code-swift.struct/cancelled`` only after everything it began has ended.
/// - `disconnect` may be called at any time, any number of times; when it returns, the stream that `receivedData` gave
///   for this connection has finished and nothing more is delivered.
/// - A `send` that is under way when the link ends, by `disconnect` or by itself, ends with it: it throws, and waits for no
///   answer of the peer any more.
/// - When the link is lost, `LinkEvent.down` is reported first, then the stream finishes.
/// - After `disconnect` or a loss, `connect` may be called again; it starts a new stream.
public protocol MeshTransport: Sendable {
    /// Opens the link. Throws a ``MeshError`` that names the peer and what to try.
    func connect() async throws

    /// Closes the link and finishes ``receivedData``. Idempotent.
    func disconnect() async

    /// Sends one frame and returns once the transport has it under way (for BLE: once the peer acknowledged the write).
    ///
    /// Frames of concurrent callers are sent whole, in the order of the calls.
    func send(_ data: Data) async throws

    /// Sends one frame without waiting for the peer's acknowledgement.
    func sendWithoutResponse(_ data: Data) async throws

    /// Whether ``sendWithoutResponse(_:)`` differs from ``send(_:)``.
    var supportsWriteWithoutResponse: Bool { get async }

    /// Whether several read commands may be under way at once.
    var supportsPipelinedReads: Bool { get async }

    /// The frames of the current connection, in order. Bounded; what does not fit is counted in
    /// ``LinkEvent/framesDropped(count:)``. One consumer at a time. Before `connect`, and after the end, it is a stream
    /// that has finished.
    var receivedData: AsyncStream<Data> { get async }

    /// Whether frames can be sent now.
    var isConnected: Bool { get async }
}

extension MeshTransport {
    public func sendWithoutResponse(_ data: Data) async throws {
        try await send(data)
    }

    public var supportsWriteWithoutResponse: Bool {
        get async { false }
    }

    public var supportsPipelinedReads: Bool {
        get async { await supportsWriteWithoutResponse }
    }
}
