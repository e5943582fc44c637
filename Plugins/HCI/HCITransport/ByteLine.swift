// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// A line that carries H4 as a stream of bytes.
final class ByteLine: HCILine {
    private let stream: LoopStream
    private var decoder = H4Decoder()
    private var onPacket: ((HCIPacketKind, RawSpan) -> Void)?
    private var onPause: (() -> Void)?
    private var onEnd: ((MeshError?) -> Void)?

    /// Takes over an open connection.
    init(_ stream: LoopStream) {
        self.stream = stream
    }

    func startReading(
        _ onPacket: @escaping (HCIPacketKind, RawSpan) -> Void, onPause: @escaping () -> Void,
        onEnd: @escaping (MeshError?) -> Void
    ) {
        self.onPacket = onPacket
        self.onPause = onPause
        self.onEnd = onEnd
        stream.startReading({ [weak self] in self?.received($0) }, onEnd: { [weak self] in self?.ended($0) })
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        // What a packet leads to may close the line, and then nobody is told of the others.
        let synchrony = decoder.bytesReceived(bytes.bytes) { onPacket?($0, $1) }
        onPause?()
        if case .lost(let finding) = synchrony {
            end(MeshError(.linkClosed, "the line to the controller is out of step: \(finding)"))
        }
    }

    private func ended(_ error: LoopError?) {
        end(error.map { MeshError(.linkClosed, "the line to the controller has failed: \($0)", cause: $0) })
    }

    private func end(_ error: MeshError?) {
        let onEnd = onEnd
        forgetReader()
        stream.close()
        onEnd?(error)
    }

    func send(_ packets: [HCIPacket]) throws(MeshError) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(packets.reduce(0) { $0 + $1.bytes.count + 1 })
        for packet in packets {
            bytes.append(packet.kind.rawValue)
            bytes.append(contentsOf: packet.bytes)
        }
        guard stream.pendingWriteBytes + bytes.count <= HCILineLimits.waitingBytes else { throw .lineStuck }
        // A write that fails is told as the end of reading.
        bytes.withUnsafeBytes { stream.write($0) }
    }

    func close() async {
        forgetReader()
        stream.close()
    }

    private func forgetReader() {
        onPacket = nil
        onPause = nil
        onEnd = nil
    }
}
